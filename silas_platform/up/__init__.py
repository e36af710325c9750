"""`manage.py up`: start, supervise and stop the processes of one machine.

This code runs before, beside or after Django, never inside a request. It ends everything that it started, also after a
crash; nothing in `apps` or `kernel` imports it."""
