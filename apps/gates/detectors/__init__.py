"""Text detectors that need no network, no model and no database (spec 5.5.1).

Pure: the same text and settings give the same result. Running time is linear in the length of the text. The entry point
is `catalogue.detect`; gate providers compare its score with the gate's threshold."""
