"""What visitors do beside talking: files, consent and pre-chat form, their other conversations, the transcript by
e-mail, the rating. Called by its API, the console and the workers."""
