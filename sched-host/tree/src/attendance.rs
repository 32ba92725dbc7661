//! Which thread is inside which component or driver: so that a call that does not come back can be named.
//!
//! # Protocol
//!
//! Each thread has a *desk*, on which it notes every call into an attended component: the node and the method, one
//! above the other as calls nest, each with a number that no other call of the thread has. Only the thread itself
//! writes to its desk, with plain stores; nothing is timed and nothing is locked.
//!
//! A [`Watch`] looks at all desks from time to time. A call whose number stands in the same place as a while ago has
//! not come back since then. The innermost such call is named: its thread waits or spins there, or calls others again
//! and again, which all come back; or it is inside another component, which is not attended, that it called. A desk may
//! change while it is read, but the depth is published after what stands at it, so a number that is read again below
//! it is that of the same call.
//!
//! The components of this project are not attended, and cost nothing more. All drivers are: a call of one is long beside
//! a note, and goes to a vendor's library.

mod method;
mod post;

pub use method::Method;
pub use post::Post;

use parking_lot::Mutex;
use sched_core::abi::driver::{Attendant, DriverCall};
use serde::Serialize;
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::*};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// A call that has not come back for a while.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OverdueCall {
    /// Where it is.
    #[serde(flatten)]
    pub post: Post,
    /// The method that was called.
    pub method: Method,
    /// Name of the thread that called it.
    pub thread: String,
    /// Seconds since it was first seen there, at least.
    pub seconds: f64,
    /// Number of the post.
    #[serde(skip)]
    number: u32,
    /// Number of the call, among those of its thread.
    #[serde(skip)]
    call: u64,
}

impl OverdueCall {
    /// Tells calls apart: the name of the thread, and the number of the call there.
    #[must_use]
    pub fn key(&self) -> (&str, u64) {
        (&self.thread, self.call)
    }

    /// Nobody waits for the call any longer: no watch reports it again.
    pub fn give_up(&self) {
        POSTS.lock().remove(&self.number);
    }
}

impl fmt::Display for OverdueCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverdueCall { post, method, thread, seconds, .. } = self;
        write!(f, "{post}: `{method}` has not come back for {seconds:.1} s (thread `{thread}`)")
    }
}

/// A call whose thread ended inside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LeftCall {
    /// Where it is.
    #[serde(flatten)]
    pub post: Post,
    /// The method that was called.
    pub method: Method,
    /// Name of the thread that called it.
    pub thread: String,
}

impl fmt::Display for LeftCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftCall { post, method, thread } = self;
        write!(f, "{post}: `{method}` (thread `{thread}`)")
    }
}

/// A registered [`Post`]: its number is what desks note.
#[derive(Debug)]
pub(crate) struct PostNumber {
    number: u32,
    /// The first method, if any, that the host stopped waiting for.
    given_up: AtomicU8,
}

impl PostNumber {
    pub(crate) fn new(post: Post) -> PostNumber {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        POSTS.lock().insert(number, post);
        PostNumber { number, given_up: AtomicU8::new(0) }
    }

    /// Whether the call is one into the component here.
    pub(crate) fn is_of(&self, call: &OverdueCall) -> bool {
        self.number == call.number
    }

    /// The host does not wait any longer for a call, and goes on without: no watch reports it. Returns the post the
    /// first time.
    pub(crate) fn give_up(&self, method: Method) -> Option<Post> {
        let _ = self.given_up.compare_exchange(0, method.code(), Relaxed, Relaxed);
        POSTS.lock().remove(&self.number)
    }

    /// The call that the host stopped waiting for first.
    pub(crate) fn given_up(&self) -> Option<Method> {
        Method::of_code(self.given_up.load(Relaxed))
    }
}

impl Drop for PostNumber {
    fn drop(&mut self) {
        POSTS.lock().remove(&self.number);
    }
}

static POSTS: Mutex<BTreeMap<u32, Post>> = Mutex::new(BTreeMap::new());

/// Calls nested deeper than this are not noted.
const DEPTH: usize = 64;

/// Where a thread notes its calls.
struct Desk {
    thread: String,
    /// Calls so far.
    begun: AtomicU64,
    depth: AtomicU32,
    /// The calls that it is inside of, outermost first.
    calls: [Noted; DEPTH],
}

/// A call on a desk.
#[derive(Default)]
struct Noted {
    /// Number of the post, and method.
    call: AtomicU64,
    /// How many calls of the thread began before it.
    number: AtomicU64,
}

static DESKS: Mutex<Vec<Weak<Desk>>> = Mutex::new(Vec::new());

thread_local! {
    static DESK: OnceCell<OwnDesk> = const { OnceCell::new() };
    /// Whether the thread has one. The first look at a desk allocates, since it is dropped when the thread ends; this
    /// one never does.
    static HAS_DESK: Cell<bool> = const { Cell::new(false) };
}

/// The desk of a thread, in its hands. A [`Watch`] may have the desk in its own for a moment when the thread ends.
struct OwnDesk(Arc<Desk>);

impl Deref for OwnDesk {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Drop for OwnDesk {
    /// The thread ends, or ends the process, which a component that it is inside of must not do.
    fn drop(&mut self) {
        if let Some(left) = self.left() {
            *LEFT.lock() = Some(left);
        }
    }
}

fn new_desk() -> OwnDesk {
    HAS_DESK.set(true);
    let thread = std::thread::current().name().unwrap_or("without a name").to_owned();
    let calls = std::array::from_fn(|_| Noted::default());
    let desk = Arc::new(Desk { thread, begun: AtomicU64::new(0), depth: AtomicU32::new(0), calls });
    let mut desks = DESKS.lock();
    desks.retain(|desk| desk.strong_count() > 0);
    desks.push(Arc::downgrade(&desk));
    OwnDesk(desk)
}

/// While it lives, this thread is inside a call. Calls end in the reverse order of their beginning.
pub(crate) struct Inside(());

impl Inside {
    /// This thread calls `method` of the component at `post`.
    pub(crate) fn new(post: &PostNumber, method: Method) -> Inside {
        enter(post, method);
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        leave();
    }
}

/// Each call of a driver is noted.
impl Attendant for PostNumber {
    fn begin(&self, call: DriverCall) {
        enter(self, Method::OfDriver(call));
    }

    fn end(&self) {
        leave();
    }
}

/// Notes a call of this thread on its desk.
fn enter(post: &PostNumber, method: Method) {
    // While the thread ends, its calls are not noted.
    let _ = DESK.try_with(|desk| {
        let desk = desk.get_or_init(new_desk);
        let depth = desk.depth.load(Relaxed);
        let begun = desk.begun.load(Relaxed);
        desk.begun.store(begun + 1, Relaxed);
        if let Some(noted) = desk.calls.get(depth as usize) {
            noted.call.store(u64::from(post.number) << 8 | u64::from(method.code()), Relaxed);
            noted.number.store(begun, Release);
        }
        desk.depth.store(depth + 1, Release);
    });
}

/// The innermost call of this thread has come back.
fn leave() {
    let _ = DESK.try_with(|desk| {
        let Some(desk) = desk.get() else { return };
        desk.depth.store(desk.depth.load(Relaxed) - 1, Release);
    });
}

/// The method of the component at `post` that this thread called last, among the calls that it is inside of.
pub(crate) fn method_at(post: &PostNumber) -> Option<Method> {
    let innermost = |desk: &OnceCell<OwnDesk>| {
        let desk = desk.get()?;
        let noted = desk.calls.get(..(desk.depth.load(Relaxed) as usize).min(DEPTH))?;
        let calls = noted.iter().rev().map(|noted| noted.call.load(Relaxed));
        let call = calls.into_iter().find(|call| call >> 8 == u64::from(post.number))?;
        Method::of_code(call as u8)
    };
    DESK.try_with(innermost).ok().flatten()
}

/// Looks at all threads of the process, time and again.
#[derive(Debug, Default)]
pub struct Watch {
    /// The calls that were seen on each desk, by its address, outermost first.
    seen: BTreeMap<usize, Vec<Seen>>,
}

/// A call that was seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Its number, and the post and method.
    number: u64,
    call: u64,
    since: Instant,
}

impl Watch {
    /// The calls that have not come back for this long, as far as this watch has seen.
    pub fn overdue(&mut self, patience: Duration) -> Vec<OverdueCall> {
        self.overdue_at(Instant::now(), patience)
    }

    fn overdue_at(&mut self, now: Instant, patience: Duration) -> Vec<OverdueCall> {
        let desks: Vec<Arc<Desk>> = DESKS.lock().iter().filter_map(Weak::upgrade).collect();
        let address = |desk: &Arc<Desk>| Arc::as_ptr(desk).addr();
        self.seen.retain(|seen, _| desks.iter().any(|desk| address(desk) == *seen));
        let mut overdue = Vec::new();
        for desk in &desks {
            let before = self.seen.remove(&address(desk)).unwrap_or_default();
            let seen = desk.look(&before, now);
            let waited = |seen: &Seen| now.saturating_duration_since(seen.since);
            let late = seen.iter().rev().find(|seen| waited(seen) >= patience);
            overdue.extend(late.and_then(|late| overdue_call(late, desk, waited(late))));
            self.seen.insert(address(desk), seen);
        }
        overdue
    }
}

impl Desk {
    /// The innermost call that is noted, if the thread is inside one.
    fn innermost(&self) -> Option<u64> {
        let depth = self.depth.load(Relaxed) as usize;
        depth.checked_sub(1).map(|innermost| self.calls[innermost.min(DEPTH - 1)].call.load(Relaxed))
    }

    /// The calls that the thread is inside of, some of which were seen before.
    fn look(&self, before: &[Seen], now: Instant) -> Vec<Seen> {
        let depth = (self.depth.load(Acquire) as usize).min(DEPTH);
        let see = |(at, noted): (usize, &Noted)| {
            let (number, call) = (noted.number.load(Acquire), noted.call.load(Relaxed));
            let known = before.get(at).filter(|seen| seen.number == number);
            known.copied().unwrap_or(Seen { number, call, since: now })
        };
        self.calls[..depth].iter().enumerate().map(see).collect()
    }
}

impl Desk {
    /// The innermost call, if the thread is inside one, as one that does not come back.
    fn left(&self) -> Option<LeftCall> {
        let (_, post, method) = self.innermost().and_then(noted)?;
        Some(LeftCall { post, method, thread: self.thread.clone() })
    }
}

static LEFT: Mutex<Option<LeftCall>> = Mutex::new(None);

/// The last call whose thread ended inside it, as one that calls `exit` does; or else that which this thread is inside
/// of, where it ends the process and nothing of the thread is dropped.
pub(crate) fn left_call() -> Option<LeftCall> {
    let of_this = || {
        let left = |desk: &OnceCell<OwnDesk>| desk.get()?.left();
        HAS_DESK.get().then(|| DESK.try_with(left).ok().flatten()).flatten()
    };
    LEFT.lock().take().or_else(of_this)
}

/// Passes to `name`, in parts, the name of the innermost call that this thread is inside of, and to `write` what stands
/// before and behind it: `frame`, with what crashed behind the first part. Nothing if there is none, or its name is not
/// at hand: whatever the thread was doing, this neither allocates nor waits.
pub(crate) fn write_this_call(frame: [&str; 3], write: impl Fn(&str), name: impl Fn(&str)) {
    if !HAS_DESK.get() {
        return;
    }
    let _ = DESK.try_with(|desk| {
        let Some(desk) = desk.get() else { return };
        let Some(call) = desk.innermost() else { return };
        let Some(posts) = POSTS.try_lock() else { return };
        let post = u32::try_from(call >> 8).ok().and_then(|number| posts.get(&number));
        let (Some(post), Some(method)) = (post, Method::of_code(call as u8)) else { return };
        let [before, between, behind] = frame;
        [before, post.noun(), between].into_iter().for_each(&write);
        let at = [": `", method.name(), "` (thread `", &desk.thread, "`)"];
        post.parts().into_iter().chain(at).for_each(name);
        write(behind);
    });
}

/// What a note of a call means: number of the post, the post, and the method.
fn noted(call: u64) -> Option<(u32, Post, Method)> {
    let number = u32::try_from(call >> 8).ok()?;
    let post = POSTS.lock().get(&number)?.clone();
    Some((number, post, Method::of_code(call as u8)?))
}

fn overdue_call(late: &Seen, desk: &Desk, waited: Duration) -> Option<OverdueCall> {
    let (number, post, method) = noted(late.call)?;
    let (thread, seconds) = (desk.thread.clone(), waited.as_secs_f64());
    Some(OverdueCall { post, method, thread, seconds, number, call: late.number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn post(component: &str) -> PostNumber {
        PostNumber::new(Post::component("root", component, "test"))
    }

    #[test]
    fn a_call_is_left_by_its_thread_though_a_watch_looks_at_the_desk() {
        let (begun, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let of = post("left");
        std::thread::scope(|scope| {
            let leaves = std::thread::Builder::new().name("leaves".to_owned());
            let of = &of;
            let leaves = leaves.spawn_scoped(scope, move || {
                std::mem::forget(Inside::new(of, Method::PullTask));
                begun.send(()).expect("the test waits");
                let _ = released.recv();
            });
            begins.recv().expect("it begins");
            let looked_at: Vec<Arc<Desk>> = DESKS.lock().iter().filter_map(Weak::upgrade).collect();
            drop(release);
            // Unlike the end of a scope, a join waits for what the thread drops.
            leaves.expect("it began").join().expect("it ends");
            let left = left_call().map(|LeftCall { method, thread, .. }| (method, thread));
            assert_eq!(left, Some((Method::PullTask, "leaves".to_owned())));
            drop(looked_at);
        });
    }

    #[test]
    fn the_innermost_call_that_does_not_come_back_is_named() {
        let (inside, begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let stuck = std::thread::Builder::new().name("stuck".to_owned()).spawn(move || {
            let (outer, inner) = (post("outer"), post("inner"));
            let _outer = Inside::new(&outer, Method::PullTask);
            drop(Inside::new(&inner, Method::EstimatedEnd));
            let _inner = Inside::new(&inner, Method::CanPush);
            inside.send(()).expect("the test waits");
            let _ = released.recv();
        });
        begun.recv().expect("it begins");
        let mut watch = Watch::default();
        let mut named = || watch.overdue(Duration::ZERO).into_iter().find(|call| call.thread == "stuck");
        let call = named().expect("it is stuck");
        assert_eq!((&call.post, call.method), (&Post::component("root", "inner", "test"), Method::CanPush));
        call.give_up();
        assert_eq!(named(), None, "nobody waits for it any longer");
        drop(release);
        stuck.expect("it began").join().expect("it ends");
        assert_eq!(named(), None);
    }

    #[test]
    fn a_call_that_calls_others_again_and_again_is_named() {
        let (outer, inner) = (post("outer"), post("inner"));
        let _outer = Inside::new(&outer, Method::PushTask);
        let (mut watch, here, start) = (Watch::default(), std::thread::current(), Instant::now());
        let mut named = |seconds| {
            let patience = Duration::from_secs(10);
            let calls = watch.overdue_at(start + Duration::from_secs(seconds), patience);
            calls.into_iter().find(|call| Some(&*call.thread) == here.name())
        };
        for seconds in 0..10 {
            let _inner = Inside::new(&inner, Method::CanPush);
            assert_eq!(named(seconds), None);
        }
        let _inner = Inside::new(&inner, Method::CanPush);
        let call = named(10).expect("the outer one has been there for ten seconds");
        assert_eq!((&call.post, call.method), (&Post::component("root", "outer", "test"), Method::PushTask));
    }

    #[test]
    fn calls_that_come_back_are_not_overdue() {
        let busy = post("busy");
        let mut watch = Watch::default();
        for _ in 0..3 {
            let _inside = Inside::new(&busy, Method::PushTask);
            assert!(watch.overdue(Duration::from_secs(3600)).is_empty());
        }
        for code in 0..=u8::MAX {
            assert_eq!(Method::of_code(code).map_or(code, Method::code), code);
        }
    }

    #[test]
    fn a_call_nested_too_deep_is_counted_and_not_noted() {
        let post = post("deep");
        let all: Vec<Inside> = (0..DEPTH + 3).map(|_| Inside::new(&post, Method::PushTask)).collect();
        drop(all);
        assert_eq!(DESK.with(|desk| desk.get().map(|desk| desk.depth.load(Relaxed))), Some(0));
    }
}
