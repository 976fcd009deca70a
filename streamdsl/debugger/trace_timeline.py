"""The timeline of a trace: the events of each source above those of the output."""

from __future__ import annotations

from dataclasses import replace

from streamdsl.debugger.input_rows import inputs_of, ticked
from streamdsl.debugger.pushes import Recording
from streamdsl.pictures.lanes import events_lane
from streamdsl.pictures.timeline_picture import Timeline
from streamdsl.plan.node import sources
from streamdsl.temporal import Cti, Event


def timeline(recording: Recording) -> Timeline:
    """Return the timeline; a CTI that a progress policy gave is drawn as one that was sent, and what is left out is said."""
    unit, promises = recording.unit, inputs_of(recording, recording.pushes).promises
    lanes = []
    for name in sources(recording.plan):
        late = [each for push in recording.pushes for source, each in push.rejected if source == name]
        lanes.append(
            events_lane(name, [*_came(recording, name), *(cti for _, source, cti in promises if source == name)], late=late)
        )
    output = ticked((event for push in recording.pushes for event in push.output), unit)
    lanes.append(events_lane("output", output, "output"))
    notes = "; ".join(filter(None, [lanes[0].note, *recording.limits()]))
    return Timeline([replace(lanes[0], note=notes), *lanes[1:]], unit)


def _came(recording: Recording, name: str) -> list[Event[object]]:
    """Return the insertions and retractions of a source."""
    batches = [events for push in recording.pushes for source, events in push.batches if source == name]
    return [event for events in batches for event in ticked(events, recording.unit) if not isinstance(event, Cti)]
