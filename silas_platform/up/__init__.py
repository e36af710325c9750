"""How do the processes of one machine start, stay up and stop? (`manage.py up`)

Everything here runs before, beside or after Django, never inside a request. What is started in here is ended in here,
also after a crash; nothing in `apps` or `kernel` imports it.
"""
