"""Every executable form is in a capture or listed with its reason; the page that lists them is fresh."""

from pathlib import Path

from warpsmith.hardware.coverage import captured_forms, executable_forms, listing, uncaptured

DATA = Path(__file__).parent / "data"
PAGE = Path(__file__).parents[2] / "docs" / "design" / "not-captured.md"


def test_no_form_lacks_a_capture_and_a_reason():
    assert uncaptured(DATA).get("", []) == []


def test_most_forms_are_captured():
    executable = {m.mnemonic for forms in executable_forms().values() for m in forms}
    assert len(executable & captured_forms(DATA)) > max(6500, 0.85 * len(executable))


def test_the_page_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == listing(DATA)
