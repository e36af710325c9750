"""The small process that makes sandboxes: one beside each worker or web process that runs untrusted code.

It has loaded only the standard library, so a fork of it is cheap. Each run gets a fork (`overseer`), which lives
outside of the sandbox's process namespace, invisible and unreachable from inside. `keeper_client` starts it as
`keeper.serve`, without our packages and without an environment; its modules import each other relatively and nothing
else of ours.
"""
