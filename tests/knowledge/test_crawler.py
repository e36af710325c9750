"""What of a website is read, and what of a hostile one is not."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from apps.knowledge import crawler
from apps.knowledge.crawler import CrawledPage, crawl
from kernel.http.fetch import FetchFailed, fetch
from tests.factories.website import Served, Website, serving

LONG = "<p>Parcels come back within thirty days.</p>"


@pytest.fixture
def site(settings_private: None) -> Iterator[Website]:
    with serving() as served:
        yield served


@pytest.fixture
def settings_private(monkeypatch: pytest.MonkeyPatch) -> None:
    from django.conf import settings

    monkeypatch.setattr(settings, "WEBSITES_PRIVATE", True)


def read(site: Website, path: str = "/", **how: Any) -> list[CrawledPage]:
    return list(crawl(f"{site.origin}{path}", **how))


def texts(pages: list[CrawledPage]) -> list[str]:
    return [document.text for page in pages for document in page.parsed.documents]


def problems(pages: list[CrawledPage]) -> list[str]:
    return [problem.message for page in pages for problem in page.parsed.problems]


def test_page_and_what_it_leads_to_are_read(site: Website) -> None:
    site.page("/", f'{LONG}<a href="/returns#how">Returns</a><a href="/returns">Again</a>')
    site.page("/returns", "<p>Returns are free.</p>")
    assert len(texts(read(site))) == 2
    assert site.asked == ["/robots.txt", "/sitemap.xml", "/", "/returns"]


def test_other_hosts_are_not_visited(site: Website) -> None:
    site.page("/", f'{LONG}<a href="http://localhost:1/x">Away</a><a href="javascript:alert(1)">No</a>')
    assert len(read(site)) == 1


def test_redirect_to_another_host_is_not_followed(site: Website) -> None:
    site.page("/", "", status=302, headers={"Location": "http://127.0.0.2:9/"})
    assert problems(read(site)) == ["It redirects to another website, so it was skipped."]


def test_redirect_on_the_site_is_followed(site: Website) -> None:
    site.page("/", "", status=301, headers={"Location": "/home"})
    site.page("/home", LONG)
    assert texts(read(site)) == ["Parcels come back within thirty days."]


def test_redirect_in_a_circle_ends(site: Website) -> None:
    site.page("/", "", status=302, headers={"Location": "/"})
    assert problems(read(site)) == ["The server did not answer."]


def test_robots_txt_is_respected(site: Website) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /private", kind="text/plain")
    site.page("/", f'{LONG}<a href="/private/x">Private</a>')
    site.page("/private/x", "<p>Secret</p>")
    found = read(site)
    assert "/private/x" not in site.asked and "robots.txt" in problems(found)[0]


def test_endless_page_is_cut_off(site: Website) -> None:
    site.pages["/"] = Served(b"<p>more</p>" * 10_000, times=10_000)
    assert problems(read(site)) == ["The page is larger than 2 MB."]


def test_packed_page_is_counted_unpacked(site: Website) -> None:
    bomb = gzip.compress(b"<p>more</p>" * 1_000_000)
    site.pages["/"] = Served(bomb, headers={"Content-Encoding": "gzip"})
    assert problems(read(site)) == ["The page is larger than 2 MB."]


@pytest.mark.parametrize("packing", ["gzip, gzip", "br", "zstd", "deflate"])
def test_page_packed_more_than_once_or_otherwise_is_not_unpacked(site: Website, packing: str) -> None:
    bomb = gzip.compress(gzip.compress(b"<p>more</p>" * 1000))
    site.pages["/"] = Served(bomb, headers={"Content-Encoding": packing})
    assert problems(read(site)) == ["The server did not answer."]


def test_charset_of_the_header_is_believed(site: Website) -> None:
    site.pages["/"] = Served("<p>Gr\u00fc\u00dfe</p>".encode("latin-1"), kind="text/html; charset=ISO-8859-1")
    assert texts(read(site)) == ["Gr\u00fc\u00dfe"]


@pytest.mark.parametrize("charset", ["utf-8", "klingon-1"])
def test_wrong_charset_is_named(site: Website, charset: str) -> None:
    site.pages["/"] = Served("<p>Gr\u00fc\u00dfe</p>".encode("latin-1"), kind=f"text/html; charset={charset}")
    assert problems(read(site)) == [f"The page isn't encoded as {charset}, as it states."]


def test_site_of_endless_links_ends(site: Website) -> None:
    links = "".join(f'<a href="/{number}">x</a>' for number in range(2000))
    site.page("/", LONG + links)
    for number in range(10):
        site.page(f"/{number}", LONG + links)
    assert len(read(site, most=5)) == 5


def test_picture_that_somebody_named_is_no_page(site: Website) -> None:
    site.pages["/"] = Served(b"\x89PNG", kind="image/png")
    assert problems(read(site)) == ["It's not a web page (image/png)."]


def test_answer_other_than_200_is_named(site: Website) -> None:
    assert problems(read(site, "/nowhere")) == ["The server answered 404."]


def test_unpaid_time_ends_the_walk(site: Website, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawler, "SECONDS", -1.0)
    assert read(site) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://0x7f000001/",
        "http://2130706433/",
        "http://10.0.0.1/",
        "http://router.lan/",
        "ftp://example.com/",
        "http://user:pass@example.com/",
        "file:///etc/passwd",
    ],
)
def test_address_inside_is_refused(url: str) -> None:
    with pytest.raises(FetchFailed, match="address_refused"):
        fetch(url, max_bytes=1000, seconds=5)


def test_name_that_stands_for_an_address_inside_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel.http import resolver

    answer = [(2, 1, 6, "", ("93.184.216.34", 80)), (2, 1, 6, "", ("127.0.0.1", 80))]
    monkeypatch.setattr(resolver.socket, "getaddrinfo", lambda *_, **__: answer)
    with pytest.raises(FetchFailed, match="address_inside"):
        fetch("http://rebound.example.com/", max_bytes=1000, seconds=5)


def sitemap(*addresses: str, index: bool = False) -> str:
    tag = "sitemapindex" if index else "urlset"
    return f"<{tag}>{''.join(f'<url><loc>{address}</loc></url>' for address in addresses)}</{tag}>"


def test_page_that_only_the_sitemap_lists_is_read(site: Website) -> None:
    site.page("/", LONG)
    site.page("/sitemap.xml", sitemap(f"{site.origin}/", f"{site.origin}/hidden?a=1&amp;b=2"), kind="text/xml")
    site.page("/hidden?a=1&b=2", "<p>Hidden</p>")
    assert [page.url.removeprefix(site.origin) for page in read(site)] == ["/", "/hidden?a=1&b=2"]


def test_index_of_sitemaps_named_by_robots_txt_is_followed(site: Website) -> None:
    site.page("/robots.txt", f"Sitemap: {site.origin}/index.xml", kind="text/plain")
    site.page("/index.xml", sitemap(f"{site.origin}/index.xml", f"{site.origin}/part.xml", index=True), kind="text/xml")
    site.page("/part.xml", sitemap(f"<![CDATA[{site.origin}/listed]]>"), kind="text/xml")
    site.page("/", LONG)
    site.page("/listed", "<p>Listed</p>")
    assert "Listed" in texts(read(site))
    assert site.asked.count("/index.xml") == 1


def test_sitemap_leads_neither_to_other_hosts_nor_out_of_the_folder(site: Website) -> None:
    named = ("http://localhost:1/docs/x", "http://[", "file:///etc/passwd", f"{site.origin}/shop")
    site.page("/sitemap.xml", sitemap(*named), kind="text/xml")
    site.page("/docs/", LONG)
    read(site, "/docs/")
    assert site.asked == ["/robots.txt", "/sitemap.xml", "/docs/"]


def test_pages_of_the_sitemap_are_within_robots_txt(site: Website) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /private", kind="text/plain")
    site.page("/sitemap.xml", sitemap(f"{site.origin}/private/x"), kind="text/xml")
    site.page("/", LONG)
    read(site)
    assert "/private/x" not in site.asked


def test_endless_index_of_sitemaps_ends(site: Website) -> None:
    parts = [f"{site.origin}/{number}.xml" for number in range(50)]
    site.page("/sitemap.xml", sitemap(*parts, index=True), kind="text/xml")
    site.page("/", LONG)
    read(site)
    assert sum(path.endswith(".xml") for path in site.asked) == 10


def test_single_page_is_read_without_the_sitemap(site: Website) -> None:
    site.page("/", LONG)
    read(site, most=1)
    assert "/sitemap.xml" not in site.asked
