//! While workers are busy, scheduling a task allocates no memory.
//!
//! A file of its own, with one test: it counts the allocations of the whole process.

use sched_host::runtime::{Read, ReadWrite, Recording, Runtime};
use sched_tests::stock;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's allocator, which counts.
struct Counting;

static ASKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.fetch_add(1, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// As many as a codelet names by themselves.
type Reads = (Read<u64>, Read<u64>, Read<u64>, Read<u64>, Read<u64>, Read<u64>, Read<u64>, ReadWrite<u64>);

/// A wave of tasks with and without data, of three codelets and several priorities, and of replayed ones.
struct Wave<'a> {
    runtime: &'a Runtime,
    free: sched_host::runtime::Codelet<()>,
    add: sched_host::runtime::Codelet<(Read<u64>, ReadWrite<u64>)>,
    gather: sched_host::runtime::Codelet<Reads>,
    data: Vec<sched_host::runtime::Handle<u64>>,
    recording: Recording,
}

impl Wave<'_> {
    fn run(&self) {
        for number in 0..TASKS {
            let (from, to) = (number % self.data.len(), (number * 7 + 1) % self.data.len());
            self.runtime.task(&self.free, ()).submit().unwrap();
            if from != to {
                let priority = (number % 3) as i32;
                self.runtime.task(&self.add, (&self.data[from], &self.data[to])).priority(priority).submit().unwrap();
            }
        }
        for number in 0..TASKS / 10 {
            let at = |away: usize| &self.data[(number + away) % 8];
            let data = (at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
            self.runtime.task(&self.gather, data).submit().unwrap();
        }
        self.runtime.run(&self.recording).unwrap();
        self.runtime.wait_all().unwrap();
    }
}

const TASKS: usize = 5_000;

#[test]
fn a_wave_of_tasks_asks_for_no_memory_once_the_runtime_has_seen_one() {
    for tree in [stock::EAGER, stock::SHAPES[1]] {
        let runtime = stock::runtime(tree, 2);
        let gather = runtime.codelet::<Reads, ()>("gather").cpu("gather", |_, (a, b, c, d, e, f, g, to)| {
            *to = [a, b, c, d, e, f, g].into_iter().fold(*to, |sum, from| sum.wrapping_add(*from));
        });
        let data: Vec<_> = (0..8).map(|number| runtime.register(number)).collect();
        let add =
            runtime.codelet("add").cpu("add", |_, (from, to): (&u64, &mut u64)| *to = to.wrapping_add(*from)).build();
        let recording = runtime.record(|recorder| {
            (0..TASKS).try_for_each(|at| recorder.task(&add, (&data[at % 8], &data[(at + 3) % 8])).submit().map(drop))
        });
        let wave = Wave {
            runtime: &runtime,
            gather: gather.build(),
            recording: recording.unwrap(),
            add,
            data,
            free: runtime.codelet("free").cpu("empty", |_, ()| {}).build(),
        };
        // Waves differ in how far the workers lag behind, so the first ones may still make lists longer.
        let asked = (0..20).map(|_| {
            let before = ASKED.load(Relaxed);
            wave.run();
            ASKED.load(Relaxed) - before
        });
        let least = asked.min().unwrap();
        assert!(least < TASKS as u64 / 100, "{least} allocations for {TASKS} tasks and more under `{tree}`");
    }
}
