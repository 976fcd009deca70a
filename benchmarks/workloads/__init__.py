"""The workloads, one file for each kind, in order of `docs/performance.md`."""

from benchmarks.workload import Workload
from benchmarks.workloads import band_join, disorder, hopping, latency, modules, packets, snapshot, tumbling

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for module in (tumbling, hopping, packets, disorder, snapshot, band_join, modules, latency)
    for workload in module.WORKLOADS
}
