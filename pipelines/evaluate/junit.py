"""A report as JUnit's XML, which every CI shows: a test for each figure that decides, and for each case that failed."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring


@dataclass(frozen=True)
class Line:
    """One line of the report; `failure` is empty where it passed."""

    group: str
    name: str
    failure: str = ""
    seconds: float = 0.0


def junit(suite: str, tests: list[Line]) -> str:
    """The document, ending with a line break."""
    failures = sum(bool(test.failure) for test in tests)
    counts = {"tests": str(len(tests)), "failures": str(failures)}
    root = Element("testsuites", counts)
    inner = SubElement(root, "testsuite", {"name": suite, **counts, "errors": "0", "skipped": "0"})
    for test in tests:
        shown = {"classname": test.group, "name": test.name, "time": f"{test.seconds:.3f}"}
        element = SubElement(inner, "testcase", shown)
        if test.failure:
            SubElement(element, "failure", {"message": test.failure}).text = test.failure
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"
