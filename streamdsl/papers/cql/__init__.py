"""CQL's streams and relations, with batches that SPREAD can change (paper 002).

    >>> import streamdsl as sd
    >>> from streamdsl import cql
    >>> g = cql.stream_group(S=[({"car": 1, "speed": 50}, 1), ({"car": 2, "speed": 50}, 1), ({"car": 3, "speed": 20}, 2)])
    >>> g.S.range(1).aggregate(mean=sd.avg(lambda e: e.speed)).istream().events()
    [((1, 1), Record(mean=50.0)), ((2, 1), Record(mean=20.0))]

A group of streams has an order of batches, windows make relations of streams, `istream` and its like streams of relations.
"""

from streamdsl.papers.cql.batch_stream import BatchStream, Partition
from streamdsl.papers.cql.batching import CCL, ORACLE, STREAMBASE, Batching
from streamdsl.papers.cql.group_timeline import Batch, Timeline
from streamdsl.papers.cql.relation import GroupedRelation, Relation, table
from streamdsl.papers.cql.relation_session import Changes, RelationSession
from streamdsl.papers.cql.spreading import RunningSpread, spread
from streamdsl.papers.cql.stream_groups import StreamGroup, allowed, stream_group

__all__ = [
    "CCL",
    "ORACLE",
    "STREAMBASE",
    "Batch",
    "BatchStream",
    "Batching",
    "Changes",
    "GroupedRelation",
    "Partition",
    "Relation",
    "RelationSession",
    "RunningSpread",
    "StreamGroup",
    "Timeline",
    "allowed",
    "spread",
    "stream_group",
    "table",
]
