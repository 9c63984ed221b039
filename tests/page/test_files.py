"""The committed files of the page match the sources, are small, and name no other origin."""

import re
import shutil
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from dynamo_dynadmin.http import page

from tools.page import source

#: Larger pages load slowly on slow connections. Bytes, before compression.
LARGEST = 400 << 10
LONGEST_MODULE = 300
#: Identifiers of formats, which browsers do not request.
NAMESPACES = ("http://www.w3.org/",)


def test_the_committed_files_match_the_sources() -> None:
    assert source.problems() == []


def test_a_changed_source_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = tmp_path / "services/dynadmin/page"
    shutil.copytree(source.SOURCES, copied)
    (tmp_path / "requirements").mkdir()
    shutil.copy(source.ROOT / "requirements/page.txt", tmp_path / "requirements")
    monkeypatch.setattr(source, "ROOT", tmp_path)
    monkeypatch.setattr(source, "SOURCES", copied)
    assert source.problems() == []
    (copied / "src/app.ts").write_text((copied / "src/app.ts").read_text() + "\n// changed")
    assert source.problems() == [f"{source.BUILT} was built from other sources"]


def test_no_file_names_another_origin() -> None:
    for name in source.FILES:
        text = (source.BUILT / name).read_text()
        matches = [each for each in re.findall(r"https?://[^\s\"'`)<>\\]+", text) if not each.startswith(NAMESPACES)]
        assert matches == [], name
        assert "@import" not in text


def test_the_document_has_nothing_that_the_policy_blocks() -> None:
    text = (source.BUILT / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=", text)


def test_the_page_is_small() -> None:
    assert sum((source.BUILT / name).stat().st_size for name in source.FILES) < LARGEST


def test_no_module_is_long() -> None:
    lengths = {
        str(each.relative_to(source.SOURCES)): len(each.read_text().splitlines())
        for each in (source.SOURCES / "src").rglob("*")
        if each.is_file()
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


async def test_files_are_served_with_a_strict_policy_and_cached() -> None:
    app = web.Application()
    for path, handle in page.routes().items():
        app.router.add_get(path, handle)
    async with TestClient(TestServer(app)) as client:
        for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
            answer = await client.get(path)
            assert (answer.status, answer.content_type) == (200, kind)
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'self'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            again = await client.get(path, headers={"If-None-Match": answer.headers["ETag"]})
            assert (again.status, await again.read()) == (304, b"")
