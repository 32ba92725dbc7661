//! Messages between ranks: on each rank a track for those that it sends and one for those that it receives, and an
//! arrow for each.

use super::{Args, Line, Lines, RANKS, micros};
use crate::event::{Event, RankMessage};
use crate::track::Trace;
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// Tracks of a rank, behind those of its workers.
const SENDS: u32 = 1_000_001;
const RECEIVES: u32 = 1_000_002;

/// Longest mark of a message, in nanoseconds: it marks a time, and arrows need a length to begin and end at.
const MARK: u64 = 1_000;

/// One end of a message.
struct End {
    nanos: u64,
    /// Number of the message.
    id: u64,
    message: RankMessage,
}

pub(super) fn write(trace: &Trace, lines: &mut Lines<'_>) -> io::Result<()> {
    // By rank and track.
    let mut tracks: BTreeMap<(u32, u32), Vec<End>> = BTreeMap::new();
    let mut under_way: BTreeMap<RankMessage, VecDeque<u64>> = BTreeMap::new();
    let mut count = 0;
    for stamped in &trace.events {
        let (track, id, message) = match stamped.event {
            Event::Sent(message) => {
                count += 1;
                under_way.entry(message).or_default().push_back(count);
                ((message.from, SENDS), count, message)
            }
            Event::Received(message) => {
                let Some(id) = under_way.get_mut(&message).and_then(VecDeque::pop_front) else { continue };
                ((message.to, RECEIVES), id, message)
            }
            _ => continue,
        };
        tracks.entry(track).or_default().push(End { nanos: stamped.nanos, id, message });
    }
    for ((rank, track), ends) in tracks {
        let (pid, sends) = (RANKS + rank, track == SENDS);
        lines.track(pid, track, if sends { "sends" } else { "receives" })?;
        for (at, End { nanos, id, message }) in ends.iter().enumerate() {
            let next = ends.get(at + 1).map_or(u64::MAX, |next| next.nanos);
            let name = message.data.map_or_else(|| "end of a task".to_owned(), |data| trace.data_name(data));
            let other = if sends { message.to } else { message.from };
            let other = trace.ranks.get(other as usize).map_or("?", String::as_str);
            let line = Line { cat: "message", ts: micros(*nanos), pid, tid: track, ..Line::default() };
            lines.add(&Line {
                name: &name,
                ph: "X",
                dur: Some(micros(next.saturating_sub(*nanos).min(MARK))),
                args: Args::Message { rank: other, bytes: message.bytes },
                ..line
            })?;
            let (ph, bp) = if sends { ("s", None) } else { ("f", Some("e")) };
            let arrow = Line { cat: "message", ts: micros(*nanos), pid, tid: track, ..Line::default() };
            lines.add(&Line { name: "message", ph, bp, id: Some(*id), ..arrow })?;
        }
    }
    Ok(())
}
