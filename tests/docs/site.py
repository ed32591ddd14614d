"""A built site: its pages, links and resources."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

RESOURCES = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


@dataclass
class Page:
    """The content of one HTML page.

    Attributes:
        ids: where links can lead to.
        links: where its own lead to, the resources included.
        menu: those of the navigation.
        resources: what is loaded with it.
        text: what a reader sees of it.
    """

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    menu: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._navs = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._navs += tag == "nav"
        self.page.ids |= {values[name] for name in ("id", "name") if name in values}
        target = values.get(RESOURCES.get(tag, "href"))
        if target is None:
            return
        self.page.links.append(target)
        if tag in RESOURCES:
            self.page.resources.append(target)
        elif self._navs:
            self.page.menu.append(target)

    def handle_endtag(self, tag: str) -> None:
        self._navs -= tag == "nav"

    def handle_data(self, data: str) -> None:
        self.page.text += data


def read_site(folder: Path) -> dict[Path, Page]:
    """Every page of a site by its file, except the 404 page, which has no fixed address."""
    found = {}
    for path in sorted(folder.rglob("*.html")):
        if path.name != "404.html":
            reader = _Reader()
            reader.feed(path.read_text(encoding="utf-8"))
            found[path] = reader.page
    return found


def is_external(target: str) -> bool:
    """Whether a link leaves the site."""
    parts = urlsplit(target)
    return bool(parts.scheme or parts.netloc)


def target_of(path: Path, link: str) -> tuple[Path, str]:
    """The file and the anchor that a link points to."""
    parts = urlsplit(link)
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    return (file / "index.html" if file.is_dir() else file), unquote(parts.fragment)


def broken_links(site: dict[Path, Page]) -> list[str]:
    """The broken links within a site."""
    broken = []
    for path, page in site.items():
        for link in filter(lambda link: not is_external(link), page.links):
            file, anchor = target_of(path, link)
            known = site[file].ids if file in site else set()
            if not file.is_file() or (anchor and file in site and anchor not in known):
                broken.append(f"{path.name}: {link}")
    return broken


def reachable(site: dict[Path, Page], start: Path) -> set[Path]:
    """The pages that the navigation reaches."""
    return {start} | {target_of(start, link)[0] for link in site[start].menu} & set(site)


def loaded_by_styles(folder: Path) -> list[str]:
    """External resources that the style sheets load."""
    pattern = re.compile(r"url\(\s*[\"']?((?:https?:)?//[^)]*)|@import\s+[\"'](https?:[^\"']*)")
    return [
        found[0] for path in folder.rglob("*.css") for found in pattern.finditer(path.read_text())
    ]
