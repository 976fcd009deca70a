"""Nexmark's queries 0-9, 11, 12 and 15-22, each beside its definition in plain Python.

Of 50 events one is a person, three are auctions, the rest bids, as in the original. Times are milliseconds, and a day is ten
seconds: 1,000 events. Prices are small, so ranks of prices are thirds of what there is, as in the original. Where that asks for
the bid with the highest price, all bids that have it are given, and among the ten highest all that equal the tenth. Query 6
gives an average from a seller's tenth sale on. Queries 15 and 16 leave out what the original makes of the time of day as text.

Left out: query 10, which writes bids to files by their time (a sink's matter: `streamdsl.sinks`), 13, which looks up in a file by
the clock of the machine, and 14, a filter and a function of Python as in query 21.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from re import search
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np

import streamdsl as sd
from benchmarks.command import Study

SECOND = 1_000
WINDOW = 10 * SECOND
HOT, HOT_HOP = 60 * SECOND, 10 * SECOND
GAP = 10 * SECOND
SALES = 10
HOT_SELLER = 20
"""Of so many persons one sells half of what they sell."""
RATE = 0.908
DAY = 10 * SECOND
"""What stands for a day, so that few events have several."""
CHEAP, DEAR = 334, 667
"""Prices below the first are of rank 1, from the second on of rank 3."""
TOP = 10
CHANNELS = 10_000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
"""Half of the bids come through these, the others through one of so many, nine tenths of which have their number in the url."""
STATES = ("OR", "ID", "CA")

Row = tuple[int, int, Any]


class Person(NamedTuple):
    le: int
    id: int
    name: str
    city: str
    state: str


class Auction(NamedTuple):
    le: int
    id: int
    seller: int
    category: int
    expires: int


class Bid(NamedTuple):
    le: int
    auction: int
    bidder: int
    price: int
    arrived: int
    channel: str
    url: str


@dataclass(frozen=True)
class Nexmark:
    """The three streams, in order of time."""

    persons: list[Person]
    auctions: list[Auction]
    bids: list[Bid]

    def tables(self) -> dict[str, Any]:
        """Return them as Arrow tables."""
        import pyarrow as pa

        streams = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: pa.Table.from_pylist([row._asdict() for row in rows]) for name, rows in streams.items()}


def generate(events: int, seed: int = 0) -> Nexmark:
    """Return so many events, a hundred a second; each bid is on one of the last auctions, and arrives up to 2 s later."""
    rng = np.random.default_rng(seed)
    through = channels(events, seed)
    made = Nexmark([], [], [])
    for number in range(events):
        le = number * 10
        kind, draw = number % 50, rng.integers(0, 1 << 30, 4).tolist()
        if kind == 0:
            person = Person(
                le, len(made.persons), f"name {draw[0] % 97}", f"city {draw[1] % 9}", ("OR", "ID", "CA", "WA", "NY")[draw[2] % 5]
            )
            made.persons.append(person)
        elif kind <= 3:
            newest = len(made.persons) - 1
            seller = newest // HOT_SELLER * HOT_SELLER if draw[0] % 2 else max(0, newest - draw[3] % 4)
            closes = le + 500 + draw[2] % 5_000
            made.auctions.append(Auction(le, len(made.auctions), seller, 10 + draw[1] % 5, closes))
        else:
            item = max(0, len(made.auctions) - 1 - draw[0] % 10)
            bidder, price, arrived = draw[1] % (len(made.persons) + 20), 1 + draw[2] % 1_000, le + draw[3] % 2_000
            made.bids.append(Bid(le, item, bidder, price, arrived, *through[number]))
    return made


def channels(events: int, seed: int) -> list[tuple[str, str]]:
    """Return for each event the channel of a bid, and its url."""
    rng = np.random.default_rng([seed, 1])
    names = [*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))]
    letters = np.array([*ascii_lowercase])[rng.integers(0, 26, (len(names), 3, 5))]
    pages = ["/".join("".join(part) for part in parts) for parts in letters]
    numbered = rng.integers(0, 10, len(names)) > 0
    numbered[: len(HOT_CHANNELS)] = False
    queries = [f"query=1&channel_id={at}" if has else "query=1" for at, has in enumerate(numbered)]
    urls = [f"https://www.nexmark.com/{page}/item.htm?{query}" for page, query in zip(pages, queries, strict=True)]
    hot, any_of = rng.integers(0, len(HOT_CHANNELS), events), rng.integers(len(HOT_CHANNELS), len(names), events)
    chosen = np.where(rng.integers(0, 2, events) > 0, hot, any_of).tolist()
    return [(names[at], urls[at]) for at in chosen]


def streams() -> tuple[sd.Stream[Any], sd.Stream[Any], sd.Stream[Any]]:
    return sd.source("persons"), sd.source("auctions"), sd.source("bids")


def for_ever(stream: sd.Stream[Any]) -> sd.Stream[Any]:
    return stream.alter_duration(sd.INFINITY)


def while_open(auctions: sd.Stream[Any]) -> sd.Stream[Any]:
    return auctions.alter_duration(lambda e, life: e.expires - life.le)


def closing(auctions: sd.Stream[Any], bids: sd.Stream[Any]) -> sd.Stream[Any]:
    """Return the bids of each auction, all at the instant when it closes."""
    valid: sd.Stream[Any] = while_open(auctions).join(
        bids,
        on=(lambda a: a.id, lambda b: b.auction),
        select=lambda a, b: {
            "auction": a.id,
            "seller": a.seller,
            "category": a.category,
            "expires": a.expires,
            "bidder": b.bidder,
            "price": b.price,
        },
    )
    return valid.alter_lifetime(start=lambda e: e.expires, duration=1)


def sales(auctions: sd.Stream[Any], bids: sd.Stream[Any]) -> sd.Stream[Any]:
    """Return for each auction with bids its final price, at the instant when it closes."""
    by_auction = closing(auctions, bids).group_by(["auction", "seller", "category"])
    return by_auction.snapshot_window().aggregate(price=sd.max(lambda e: e.price))


def q0() -> sd.Stream[Any]:
    return streams()[2].select(
        auction=lambda e: e.auction, bidder=lambda e: e.bidder, price=lambda e: e.price, arrived=lambda e: e.arrived
    )


def q1() -> sd.Stream[Any]:
    return streams()[2].select(auction=lambda e: e.auction, bidder=lambda e: e.bidder, price=lambda e: e.price * RATE)


def q2() -> sd.Stream[Any]:
    return streams()[2].where(lambda e: e.auction % 5 == 0).select(auction=lambda e: e.auction, price=lambda e: e.price)


def q3() -> sd.Stream[Any]:
    persons, auctions, _ = streams()
    local = persons.where(lambda e: (e.state == "OR") | (e.state == "ID") | (e.state == "CA"))
    return for_ever(local).join(
        for_ever(auctions.where(lambda e: e.category == 10)),
        on=(lambda p: p.id, lambda a: a.seller),
        select=lambda p, a: {"name": p.name, "city": p.city, "state": p.state, "auction": a.id},
    )


def q4() -> sd.Stream[Any]:
    _, auctions, bids = streams()
    sold = for_ever(sales(auctions, bids)).group_by("category")
    return sold.snapshot_window().aggregate(price=sd.avg(lambda e: e.price))


def q5() -> sd.Stream[Any]:
    windows = streams()[2].group_by("auction").hopping_window(HOT, HOT_HOP, output=sd.Output.POINT_AT_END)
    counts = windows.aggregate(n=sd.count())
    most = counts.snapshot_window().aggregate(n=sd.max(lambda e: e.n))
    return counts.semi_join(most, on="n")


def q6() -> sd.Stream[Any]:
    _, auctions, bids = streams()
    by_seller = sales(auctions, bids).group_by("seller")
    last = by_seller.count_window(SALES, output=sd.Output.POINT_AT_END)
    return last.aggregate(price=sd.avg(lambda e: e.price))


def q7() -> sd.Stream[Any]:
    bids = streams()[2]
    highest = bids.tumbling_window(WINDOW).aggregate(price=sd.max(lambda e: e.price))
    return bids.semi_join(highest, on="price").select(
        auction=lambda e: e.auction, bidder=lambda e: e.bidder, price=lambda e: e.price
    )


def q8() -> sd.Stream[Any]:
    persons, auctions, _ = streams()
    new = persons.group_by(lambda e: {"id": e.id, "name": e.name}).tumbling_window(WINDOW).aggregate(n=sd.count())
    sellers = auctions.group_by("seller").tumbling_window(WINDOW).aggregate(n=sd.count())
    return new.join(sellers, on=(lambda p: p.id, lambda a: a.seller), select=lambda p, a: {"id": p.id, "name": p.name})


def q9() -> sd.Stream[Any]:
    _, auctions, bids = streams()
    winning = closing(auctions, bids).semi_join(sales(auctions, bids), on=["auction", "price"])
    return winning.select(auction=lambda e: e.auction, bidder=lambda e: e.bidder, price=lambda e: e.price)


def q11() -> sd.Stream[Any]:
    return streams()[2].group_by("bidder").session_window(GAP).aggregate(n=sd.count())


def q12() -> sd.Stream[Any]:
    """Windows over the time of arrival, which is a column of the bids."""
    arrivals = streams()[2].alter_lifetime(start=lambda e: e.arrived, duration=1)
    return arrivals.group_by("bidder").tumbling_window(WINDOW).aggregate(n=sd.count())


def rank1(bid: Any) -> Any:
    return bid.price < CHEAP


def rank2(bid: Any) -> Any:
    return (bid.price >= CHEAP) & (bid.price < DEAR)


def rank3(bid: Any) -> Any:
    return bid.price >= DEAR


def counts() -> dict[str, sd.Agg[Any, int]]:
    return {
        "bids": sd.count(),
        "rank1_bids": sd.count(where=rank1),
        "rank2_bids": sd.count(where=rank2),
        "rank3_bids": sd.count(where=rank3),
    }


def distinct_counts() -> dict[str, sd.Agg[Any, int]]:
    return {
        "bidders": sd.count_distinct(lambda e: e.bidder),
        "rank1_bidders": sd.count_distinct(lambda e: e.bidder, where=rank1),
        "rank2_bidders": sd.count_distinct(lambda e: e.bidder, where=rank2),
        "rank3_bidders": sd.count_distinct(lambda e: e.bidder, where=rank3),
        "auctions": sd.count_distinct(lambda e: e.auction),
        "rank1_auctions": sd.count_distinct(lambda e: e.auction, where=rank1),
        "rank2_auctions": sd.count_distinct(lambda e: e.auction, where=rank2),
        "rank3_auctions": sd.count_distinct(lambda e: e.auction, where=rank3),
    }


def q15() -> sd.Stream[Any]:
    return streams()[2].tumbling_window(DAY).aggregate(**counts(), **distinct_counts())


def q16() -> sd.Stream[Any]:
    return streams()[2].group_by("channel").tumbling_window(DAY).aggregate(**counts(), **distinct_counts())


def q17() -> sd.Stream[Any]:
    days = streams()[2].group_by("auction").tumbling_window(DAY)
    return days.aggregate(
        **counts(),
        lowest=sd.min(lambda e: e.price),
        highest=sd.max(lambda e: e.price),
        mean=sd.avg(lambda e: e.price),
        total=sd.sum(lambda e: e.price),
    )


def q18() -> sd.Stream[Any]:
    """Each bid until the same bidder's next one on the same auction."""
    return streams()[2].to_edges(key=["bidder", "auction"])


def q19() -> sd.Stream[Any]:
    """The highest bids so far, which change when a bid comes."""
    so_far = for_ever(streams()[2]).group_by("auction").snapshot_window()
    return so_far.top_k(TOP, by="price", rank=True).select(
        lambda e: {"auction": e[0], "rank": e[1][0], "bidder": e[1][1].bidder, "price": e[1][1].price}
    )


def q20() -> sd.Stream[Any]:
    _, auctions, bids = streams()
    return bids.join(
        for_ever(auctions.where(lambda e: e.category == 10)),
        on=(lambda b: b.auction, lambda a: a.id),
        select=lambda b, a: {
            "auction": b.auction,
            "bidder": b.bidder,
            "price": b.price,
            "channel": b.channel,
            "url": b.url,
            "seller": a.seller,
            "expires": a.expires,
        },
    )


@sd.udf
def channel_in(url: str) -> str | None:
    found = search("[?&]channel_id=([^&]*)", url)
    return found and found[1]


def q21() -> sd.Stream[Any]:
    numbered = streams()[2].select(
        auction=lambda e: e.auction,
        bidder=lambda e: e.bidder,
        price=lambda e: e.price,
        channel=lambda e: e.channel,
        number=lambda e: (
            sd.when(e.channel.lower() == "apple")
            .then("0")
            .when(e.channel.lower() == "google")
            .then("1")
            .when(e.channel.lower() == "facebook")
            .then("2")
            .when(e.channel.lower() == "baidu")
            .then("3")
            .otherwise(channel_in(e.url))
        ),
    )
    return numbered.where(lambda e: sd.not_(sd.is_none(e.number)))


def q22() -> sd.Stream[Any]:
    return streams()[2].select(
        auction=lambda e: e.auction,
        bidder=lambda e: e.bidder,
        price=lambda e: e.price,
        channel=lambda e: e.channel,
        dir1=lambda e: e.url.split("/")[3],
        dir2=lambda e: e.url.split("/")[4],
        dir3=lambda e: e.url.split("/")[5],
    )


def at(t: int, payload: Any) -> Row:
    return t, t + 1, payload


def begin(t: int) -> int:
    return t // WINDOW * WINDOW


def windows_of(rows: Iterable[tuple[int, Any]]) -> Iterator[Row]:
    """Return how many rows each key has in each tumbling window."""
    for (le, key), n in Counter((begin(t), key) for t, key in rows).items():
        yield le, le + WINDOW, (key, n)


def valid_bids(data: Nexmark) -> dict[Auction, list[Bid]]:
    """Return the auctions that have bids before they close, with these, by the time of closing."""
    found: dict[Auction, list[Bid]] = defaultdict(list)
    for bid in data.bids:
        auction = data.auctions[bid.auction] if bid.auction < len(data.auctions) else None
        if auction and auction.le <= bid.le < auction.expires:
            found[auction].append(bid)
    return dict(sorted(found.items(), key=lambda pair: pair[0].expires))


def sold(data: Nexmark) -> Iterator[tuple[Auction, int]]:
    return ((auction, max(bid.price for bid in bids)) for auction, bids in valid_bids(data).items())


def define_q0(data: Nexmark) -> Iterator[Row]:
    return (at(bid.le, (bid.auction, bid.bidder, bid.price, bid.arrived)) for bid in data.bids)


def define_q1(data: Nexmark) -> Iterator[Row]:
    return (at(bid.le, (bid.auction, bid.bidder, bid.price * RATE)) for bid in data.bids)


def define_q2(data: Nexmark) -> Iterator[Row]:
    return (at(bid.le, (bid.auction, bid.price)) for bid in data.bids if bid.auction % 5 == 0)


def define_q3(data: Nexmark) -> Iterator[Row]:
    for person in data.persons:
        for auction in data.auctions:
            if person.state in STATES and auction.category == 10 and auction.seller == person.id:
                payload = (person.name, person.city, person.state, auction.id)
                yield max(person.le, auction.le), sd.INFINITY, payload


def define_q4(data: Nexmark) -> Iterator[Row]:
    by_category: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for auction, price in sold(data):
        by_category[auction.category][auction.expires].append(price)
    for category, closings in by_category.items():
        prices: list[int] = []
        for le, re in zip(closings, [*[*closings][1:], sd.INFINITY], strict=True):
            prices += closings[le]
            yield le, re, (category, sum(prices) / len(prices))


def define_q5(data: Nexmark) -> Iterator[Row]:
    windows: dict[int, Counter[int]] = defaultdict(Counter)
    for bid in data.bids:
        last = bid.le // HOT_HOP
        for number in range(last - HOT // HOT_HOP + 1, last + 1):
            windows[number * HOT_HOP + HOT][bid.auction] += 1
    for end, counts in windows.items():
        for auction, n in counts.items():
            if n == max(counts.values()):
                yield at(end, (auction, n))


def define_q6(data: Nexmark) -> Iterator[Row]:
    by_seller: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for auction, price in sold(data):
        by_seller[auction.seller][auction.expires].append(price)
    for seller, closings in by_seller.items():
        times = list(closings)
        for stop in range(SALES, len(times) + 1):
            prices = [price for t in times[stop - SALES : stop] for price in closings[t]]
            yield at(times[stop - 1] + 1, (seller, sum(prices) / len(prices)))


def define_q7(data: Nexmark) -> Iterator[Row]:
    highest: dict[int, int] = {}
    for bid in data.bids:
        highest[begin(bid.le)] = max(bid.price, highest.get(begin(bid.le), 0))
    return (at(bid.le, (bid.auction, bid.bidder, bid.price)) for bid in data.bids if bid.price == highest[begin(bid.le)])


def define_q8(data: Nexmark) -> Iterator[Row]:
    sellers = {(begin(auction.le), auction.seller) for auction in data.auctions}
    for person in data.persons:
        le = begin(person.le)
        if (le, person.id) in sellers:
            yield le, le + WINDOW, (person.id, person.name)


def define_q9(data: Nexmark) -> Iterator[Row]:
    for auction, bids in valid_bids(data).items():
        price = max(bid.price for bid in bids)
        yield from (at(auction.expires, (auction.id, bid.bidder, price)) for bid in bids if bid.price == price)


def define_q11(data: Nexmark) -> Iterator[Row]:
    by_bidder: dict[int, list[int]] = defaultdict(list)
    for bid in data.bids:
        by_bidder[bid.bidder].append(bid.le)
    for bidder, times in by_bidder.items():
        starts = [0, *(n for n in range(1, len(times)) if times[n] >= times[n - 1] + 1 + GAP), len(times)]
        for start, stop in pairwise(starts):
            yield times[start], times[stop - 1] + 1 + GAP, (bidder, stop - start)


def define_q12(data: Nexmark) -> Iterator[Row]:
    return windows_of((bid.arrived, bid.bidder) for bid in data.bids)


def by_day(data: Nexmark, key: Callable[[Bid], tuple[Any, ...]]) -> Iterator[tuple[int, tuple[Any, ...], list[Bid]]]:
    """Return the bids of each day and key."""
    found: dict[tuple[int, tuple[Any, ...]], list[Bid]] = defaultdict(list)
    for bid in data.bids:
        found[bid.le // DAY * DAY, key(bid)].append(bid)
    return ((le, of, bids) for (le, of), bids in found.items())


def ranked(bids: list[Bid]) -> list[list[Bid]]:
    """Return all bids, and those of each rank."""
    bounds = [(0, sd.INFINITY), (0, CHEAP), (CHEAP, DEAR), (DEAR, sd.INFINITY)]
    return [[bid for bid in bids if low <= bid.price < high] for low, high in bounds]


def statistics(bids: list[Bid]) -> tuple[int, ...]:
    parts = ranked(bids)
    bidders = [len({bid.bidder for bid in part}) for part in parts]
    return (*map(len, parts), *bidders, *(len({bid.auction for bid in part}) for part in parts))


def define_q15(data: Nexmark) -> Iterator[Row]:
    return ((le, le + DAY, statistics(bids)) for le, _, bids in by_day(data, lambda bid: ()))


def define_q16(data: Nexmark) -> Iterator[Row]:
    return ((le, le + DAY, (*key, *statistics(bids))) for le, key, bids in by_day(data, lambda bid: (bid.channel,)))


def define_q17(data: Nexmark) -> Iterator[Row]:
    for le, key, bids in by_day(data, lambda bid: (bid.auction,)):
        prices = [bid.price for bid in bids]
        total = sum(prices)
        yield le, le + DAY, (*key, *map(len, ranked(bids)), min(prices), max(prices), total / len(prices), total)


def define_q18(data: Nexmark) -> Iterator[Row]:
    last: dict[tuple[int, int], Bid] = {}
    for bid in data.bids:
        before = last.get((bid.bidder, bid.auction))
        if before:
            yield before.le, bid.le, before[1:]
        last[bid.bidder, bid.auction] = bid
    yield from ((bid.le, sd.INFINITY, bid[1:]) for bid in last.values())


def define_q19(data: Nexmark) -> Iterator[Row]:
    by_auction: dict[int, list[Bid]] = defaultdict(list)
    for bid in data.bids:
        by_auction[bid.auction].append(bid)
    for auction, bids in by_auction.items():
        for n, re in enumerate([*(bid.le for bid in bids[1:]), sd.INFINITY], 1):
            for bid in bids[:n]:
                rank = 1 + sum(other.price > bid.price for other in bids[:n])
                if rank <= TOP:
                    yield bids[n - 1].le, re, (auction, rank, bid.bidder, bid.price)


def define_q20(data: Nexmark) -> Iterator[Row]:
    for bid in data.bids:
        for auction in data.auctions[bid.auction : bid.auction + 1]:
            if auction.category == 10 and auction.le <= bid.le:
                yield at(bid.le, (auction.id, bid.bidder, bid.price, bid.channel, bid.url, auction.seller, auction.expires))


def define_q21(data: Nexmark) -> Iterator[Row]:
    numbers = {"Apple": "0", "Google": "1", "Facebook": "2", "Baidu": "3"}
    for bid in data.bids:
        if bid.channel in numbers or "channel_id=" in bid.url:
            number = numbers[bid.channel] if bid.channel in numbers else bid.url.rpartition("=")[2]
            yield at(bid.le, (bid.auction, bid.bidder, bid.price, bid.channel, number))


def define_q22(data: Nexmark) -> Iterator[Row]:
    return (at(bid.le, (bid.auction, bid.bidder, bid.price, bid.channel, *bid.url.split("/")[3:6])) for bid in data.bids)


QUERIES: dict[str, tuple[Callable[[], sd.Stream[Any]], Callable[[Nexmark], Iterable[Row]]]] = {
    "q0": (q0, define_q0),
    "q1": (q1, define_q1),
    "q2": (q2, define_q2),
    "q3": (q3, define_q3),
    "q4": (q4, define_q4),
    "q5": (q5, define_q5),
    "q6": (q6, define_q6),
    "q7": (q7, define_q7),
    "q8": (q8, define_q8),
    "q9": (q9, define_q9),
    "q11": (q11, define_q11),
    "q12": (q12, define_q12),
    "q15": (q15, define_q15),
    "q16": (q16, define_q16),
    "q17": (q17, define_q17),
    "q18": (q18, define_q18),
    "q19": (q19, define_q19),
    "q20": (q20, define_q20),
    "q21": (q21, define_q21),
    "q22": (q22, define_q22),
}


def answer(name: str, data: Nexmark, tables: dict[str, Any]) -> sd.CHT[Any]:
    """Return what streamdsl answers, payloads as tuples."""
    query = QUERIES[name][0]()
    read = {source: tables[source] for source in query.open().sources}
    return sd.CHT.from_rows([(row.le, row.re, tuple(row.payload.values())) for row in query.run(read).cht()])


def defined(name: str, data: Nexmark) -> sd.CHT[Any]:
    """Return what plain Python answers."""
    return sd.CHT.from_rows(list(QUERIES[name][1](data)))


def main() -> None:
    study = Study(__doc__, QUERIES, events=20_000)
    data = generate(study.events)
    tables = data.tables()
    for name in study.parts:
        start = time.process_time()
        found = answer(name, data, tables)
        spent = time.process_time() - start
        sd.testing.assert_cht_equal(found, defined(name, data))
        micros = spent / study.events * 1e6
        study.row(
            name, f"{name:<4}{micros:>8.2f} us/event  {len(found):>8} rows, as defined", {"micros": micros, "rows": len(found)}
        )


if __name__ == "__main__":
    main()
