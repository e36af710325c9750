"""What is in this text? Detectors that need no network, no model and no database (issue C, validators; spec 5.5.1).

Pure: the same text and settings give the same answer. Work grows with the length of the text and with nothing else.
`catalogue.detect` is the way in; providers of gates call it and compare the score with the gate's threshold.
"""
