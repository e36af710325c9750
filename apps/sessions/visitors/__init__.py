"""What visitors do beside talking: files, the form and the consent before the first word, their other conversations,
the transcript by e-mail, the rating. Called by `beside_api`, the console and the web process's background loops."""
