"""One look for one thing in all figures: options have a colour and a mark, parts a colour, verdicts a colour.

Lines and points are options, bars are parts, so that a colour means one thing in a figure. Hues are of Okabe and Ito,
and of Paul Tol, darkened until they can be told from white; neighbours in a bar differ in lightness, and options that
stand side by side in their marks, so that a grey print and a colour-blind reader lose nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from k3lib.claims.verdict import CONFIRMED, CORRECTED, OPEN, REFUTED, Verdict
from k3lib.facts.clusters import NamedCluster

Rgb = tuple[float, float, float]
WHITE: Rgb = (1.0, 1.0, 1.0)
READABLE = 4.5  # contrast that small text needs with its ground, by WCAG 2.1
DARK, MUTED, PALE = "#333333", "#767676", "#BBBBBB"


@dataclass(frozen=True)
class Look:
    """How an option is drawn. colour: of its line; mark: of its points; line: style of its line; full: filled marks."""

    colour: str
    mark: str
    line: str = "-"
    full: bool = True

    @property
    def ink(self) -> str:
        """The colour of its name beside a line: dark enough to read."""
        return readable(self.colour)

    @property
    def points(self) -> dict[str, str]:
        """What matplotlib's `plot` takes for its points."""
        return {"color": self.colour, "marker": self.mark, "fillstyle": "full" if self.full else "none"}


# Options by their card, whatever the number of cards.
CARDS = {
    "h20-96": Look("#0072B2", "o"),
    "h20-141": Look("#2F96D0", "s"),
    "h200": Look("#009E73", "^"),
    "h100": Look("#6B7A3A", "X"),
    "a3-910c": Look("#D55E00", "D"),
    "atlas-950dt": Look("#B87A00", "P"),
    "gb200": Look("#C0689A", "v"),
    "b200": Look("#C0689A", ">"),
    "gb300": Look("#7B3294", "p"),
    "b300": Look("#7B3294", "<"),
    "mi355x": Look("#A3123A", "h"),
}
ANY_CARD = Look(MUTED, "d")
SERVICE = Look(DARK, "*", "--")

# Whose figure it is: what this book finds, what an article says, and what is drawn for comparison only.
OURS, ARTICLE, OTHERS = Look(DARK, "o"), Look("#AA3377", "s", "--"), Look(MUTED, "o", full=False)

# Parts of a model, of a card's memory and of a step: the experts have one colour wherever they are counted.
PARTS = {
    "experts": "#332288",
    "scales": "#A79BE0",
    "padding": "#6A5CB0",
    "dense": "#DDCC77",
    "fixed": "#666666",
    "exchange": "#E8A0AA",
    "mla": "#117733",
    "kda": "#88CCEE",
    "engine": "#882255",
    "copied": "#AA4499",
    "tables": "#882255",
    "prompt": "#999933",
    "launch": "#333333",
    "other": PALE,
}
# Parts of what a month costs, in the order in which bars stack them.
SPENDING = ("#332288", "#A79BE0", "#117733", "#DDCC77", "#882255", "#88CCEE")
# What was found of a claim.
VERDICTS: dict[Verdict, str] = {CONFIRMED: "#44AA99", CORRECTED: "#DDCC77", REFUTED: "#882255", OPEN: PALE}
# Better and worse than a reference, in shades of a factor each; the reference lies between the two halves.
BETTER_TO_WORSE = ("#0B3C6F", "#4A8CC4", "#C6DFF0", "#FBE3CF", "#EFA97C", "#B84F00")
# Sets within one figure that are no options: layouts, deployments.
SERIES = (("#0072B2", "o"), ("#009E73", "^"), ("#B87A00", "D"), ("#D55E00", "v"), ("#C0689A", "P"), ("#7B3294", "s"),
          ("#333333", "X"), ("#767676", "*"))  # fmt: skip


def of_card(device: str) -> Look:
    """The look of a card, by its name in data/hardware.csv."""
    return CARDS.get(device, ANY_CARD)


def of_cluster(cluster: NamedCluster) -> Look:
    """The look of a cluster: its card's, grey where it is no product."""
    return ANY_CARD if cluster.kind == "hypothetical" else of_card(cluster.device)


def of_way(way: str, clusters: dict[str, NamedCluster]) -> Look:
    """The look of a way to get tokens, own:CLUSTER, rent:CLUSTER:CLASS or api:MODEL@HOST: what is rented is hollow."""
    kind, name, *_ = way.split(":")
    if kind == "api":
        return SERVICE
    look = of_cluster(clusters[name])
    return replace(look, full=False, line=":") if kind == "rent" else look


def rgb(colour: str) -> Rgb:
    """#RRGGBB as three shares of 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def luminance(colour: Rgb) -> float:
    """Relative luminance of a colour in sRGB, from 0 to 1, by WCAG 2.1."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def lightness(colour: str) -> float:
    """Lightness L* of a colour, from 0 (black) to 100 (white): what a grey print leaves of it."""
    y = luminance(rgb(colour))
    return float(116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y)


def contrast(one: Rgb, other: Rgb) -> float:
    """Contrast of two colours, from 1 to 21, by WCAG 2.1."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def readable(colour: str) -> str:
    """The colour, darkened as far as small text on white needs."""
    parts = rgb(colour)
    while contrast(parts, WHITE) < READABLE:
        parts = (parts[0] * 0.97, parts[1] * 0.97, parts[2] * 0.97)
    return "#" + "".join(f"{int(part * 255):02X}" for part in parts)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on a fill."""
    return "#FFFFFF" if contrast(rgb(colour), WHITE) >= READABLE else "#111111"
