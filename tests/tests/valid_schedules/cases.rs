//! Random machines and graphs.

use sched_core::MemoryNode;
use sched_host::graph::{AccessMode, DataId, Datum, Task, TaskGraph, TaskId, WontUse};
use sched_host::sim::Platform;
use std::fmt::Write as _;

/// A sequence of random numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    /// This property, once in `count` cases.
    fn maybe(&mut self, count: u64, property: &'static str) -> &'static str {
        if self.one_in(count) { property } else { "" }
    }
}

/// The machine and the graph of this seed.
pub(crate) fn of(seed: u64) -> (Platform, TaskGraph) {
    let mut dice = Dice(seed);
    let text = machine(&mut dice);
    let machine = Platform::parse("random.kdl", &text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let graph = graph(&mut dice, machine.memories.len() as u64);
    (machine, graph)
}

/// Memories and switches that links join to a tree, with a few links more; cores, and devices of several kinds.
fn machine(dice: &mut Dice) -> String {
    let mut text = String::from("platform \"random\" {\n");
    let (memories, switches) = (1 + dice.below(4), dice.below(3));
    let mut line = |line: std::fmt::Arguments<'_>| _ = writeln!(text, "    {line}");
    for memory in 0..memories {
        let size =
            if memory > 0 && dice.one_in(3) { format!("size=\"{} kB\"", 60 + dice.below(300)) } else { String::new() };
        line(format_args!(
            "memory \"m{memory}\" {size} {}",
            if memory > 0 { dice.maybe(2, "device=#true") } else { "" }
        ));
    }
    (0..switches).for_each(|switch| line(format_args!("switch \"s{switch}\"")));
    let places: Vec<String> = (0..memories)
        .map(|memory| format!("m{memory}"))
        .chain((0..switches).map(|switch| format!("s{switch}")))
        .collect();
    for (number, place) in places.iter().enumerate().skip(1) {
        let mut ends: Vec<&String> = vec![&places[dice.below(number as u64) as usize]];
        ends.extend(
            dice.one_in(3).then(|| &places[dice.below(number as u64) as usize]).filter(|end| **end != *ends[0]),
        );
        for end in ends {
            let (speed, latency) = (100 + dice.below(9_000), dice.pick(&["0 ns", "1 us", "10 us"]));
            let way = dice.pick(&["", "shared=#true", "back=\"2 GB/s\""]);
            line(format_args!("link \"{end}\" \"{place}\" bandwidth=\"{speed} MB/s\" latency=\"{latency}\" {way}"));
        }
    }
    if dice.one_in(4) {
        line(format_args!("sharing \"latency\""));
    }
    for class in 0..1 + dice.below(4) {
        let arch = if class == 0 { "cpu" } else { dice.pick(&["cpu", "cuda", "opencl", "hip"]) };
        let (pipeline, watts) = (dice.pick(&[1, 1, 2, 4]), 10 + dice.below(20));
        for _ in 0..1 + dice.below(2) {
            let (count, memory, package) = (1 + dice.below(4), dice.below(memories), dice.maybe(3, "package=0"));
            line(format_args!(
                "workers \"c{class}\" count={count} arch=\"{arch}\" memory=\"m{memory}\" pipeline={pipeline} \
                 watts=\"{watts} W\" idle-watts=\"{} W\" {package}",
                watts / 4
            ));
        }
        let parallel = if arch == "cpu" { dice.maybe(2, "parallel=0.9") } else { "" };
        for kind in ["*", "k0", "k1"] {
            let time = dice.pick(&["time=\"70 us\"", "time=\"0 us\"", "gflops=5.0 overhead=\"2 us\"", "a=0.02 b=0.8"]);
            // A device does not execute what only others name.
            if arch == "cpu" || dice.one_in(2) {
                line(format_args!("kernel \"{kind}\" {{ on \"c{class}\" {time} {parallel}; }}"));
            }
        }
    }
    let costs = dice
        .maybe(2, "overheads submission=\"2 us\" push=\"1 us\" fetch=\"1 us\" allocation=\"5 us\" wake-up=\"3 us\"");
    line(format_args!("{costs}"));
    text + "}\n"
}

/// Tasks that use few values in every way, and hints between them.
fn graph(dice: &mut Dice, memories: u64) -> TaskGraph {
    use AccessMode::{Commute, Read, ReadWrite, Redux, Scratch, Write};
    let mut graph = TaskGraph::new("random");
    let kinds = ["k0", "k1", "k2", "join"].map(|name| graph.add_kind(name));
    graph.kinds[3].runs = false;
    let values = 1 + dice.below(6);
    for _ in 0..values {
        let home = MemoryNode(if dice.one_in(4) { dice.below(memories) as u32 } else { 0 });
        let bytes = if dice.one_in(8) { 0 } else { dice.below(12_000) };
        graph.add_data(Datum { home, ..Datum::new(bytes) });
    }
    for number in 0..dice.below(40) as u32 {
        let mut task = Task::new(if dice.one_in(12) { kinds[3] } else { kinds[dice.below(3) as usize] });
        for value in (0..values as u32).map(DataId) {
            if dice.one_in(3) {
                task =
                    task.access(value, dice.pick(&[Read, Read, Write, ReadWrite, ReadWrite, Commute, Redux, Scratch]));
            }
        }
        if number > 0 && dice.one_in(6) {
            task = task.after(TaskId(dice.below(u64::from(number)) as u32));
        }
        task.flops = 1.0 + dice.below(1_000_000) as f64;
        task.priority = dice.below(5) as i32 - 2;
        graph.add_task(task);
        if dice.one_in(6) {
            graph.wont_use.push(WontUse { submitted: number + 1, data: DataId(dice.below(values) as u32) });
        }
    }
    graph
}
