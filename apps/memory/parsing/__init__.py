"""What text is in this file? Markdown, plain text, HTML, PDF and JSONL, told apart by the name's ending.

`parse` answers with the documents and with a coded problem for every part that could not be read; it does not raise.
Text that comes out is clean: valid UTF-8, no NUL, `\\n` line ends, form feeds between the pages of a PDF.
"""

from apps.memory.parsing.files import SUFFIXES, parse, read
from apps.memory.parsing.schemas import Parsed, ParsedDocument, Problem, ProblemCode

__all__ = ["SUFFIXES", "Parsed", "ParsedDocument", "Problem", "ProblemCode", "parse", "read"]
