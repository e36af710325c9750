"""Parse Markdown, plain text, HTML, PDF and JSONL, told apart by the file name's suffix.

`parse` returns the documents and a coded problem for every part that could not be read; it does not raise. Text is
clean: valid UTF-8, no NUL, `\\n` line ends, form feeds between the pages of a PDF.
"""

from apps.knowledge.parsing.files import SUFFIXES, parse, read
from apps.knowledge.parsing.schemas import Parsed, ParsedDocument, Problem, ProblemCode

__all__ = ["SUFFIXES", "Parsed", "ParsedDocument", "Problem", "ProblemCode", "parse", "read"]
