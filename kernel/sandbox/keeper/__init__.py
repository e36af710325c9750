"""The small process that makes sandboxes: one beside each worker or web process that runs something untrusted.

It has read nothing but the standard library, so a copy of it is cheap; each run gets one (`overseer`), which lives
outside of the sandbox's process namespace, unseen and out of reach. `runner` starts it as `keeper.serve`, without our
packages and without an environment; its modules import each other relatively and nothing else of ours.
"""
