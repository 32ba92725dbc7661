//! A video pipeline: frames are decoded, filtered by strips, and encoded in order, with few of them in memory at once.
//!
//! Data is all that orders the tasks: the decoder and the encoder have a state that each frame changes, and strips are
//! parts of a frame. The bound on tasks in flight makes the program wait where it is ahead, so memory does not grow
//! with the length of the film.
//!
//! rayon does the same for comparison: it decodes some frames while it smoothes and encodes those before.
//!
//! Run it with `cargo run --release --example pipeline -- [frames] [bound]`.
#![allow(clippy::print_stdout, reason = "it is a program for people")]

use least::least;
use rayon::prelude::*;
use sched_host::runtime::{Plan, Read, ReadWrite, Runtime, WhenFull, Write};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::time::Instant;

#[path = "shared/least.rs"]
mod least;

const WIDTH: usize = 320;
const HEIGHT: usize = 180;
const STRIPS: usize = 4;

/// Decodes the next frame: made-up content that depends on all frames before.
fn decode(state: &mut u64, frame: &mut [u8]) {
    for pixel in frame {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *pixel = (*state >> 56) as u8;
    }
}

/// Smoothes each line of a strip.
fn smooth(strip: &mut [u8]) {
    for line in strip.chunks_mut(WIDTH) {
        let mut last = u16::from(line[0]);
        for pixel in line {
            last = (3 * last + u16::from(*pixel)) / 4;
            *pixel = last as u8;
        }
    }
}

/// Encodes a frame: a number that depends on all frames before.
fn encode(film: &mut u64, frame: &[u8]) {
    *film = frame.iter().fold(*film, |film, pixel| (film ^ u64::from(*pixel)).wrapping_mul(0x0100_0000_01b3));
}

/// Counts a frame while it is in memory.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The film, by tasks, and the most frames that were in memory at once.
fn film(frames: usize, bound: usize) -> Result<(u64, usize), Box<dyn Error>> {
    let runtime = Runtime::builder().bound_tasks(bound as u64, WhenFull::Wait).build()?;
    let decode = runtime
        .codelet::<(ReadWrite<u64>, Write<[u8]>), ()>("decode")
        .cpu("decode_cpu", |_, (state, frame)| decode(state, frame))
        .build();
    let smooth =
        runtime.codelet::<(ReadWrite<[u8]>,), ()>("smooth").cpu("smooth_cpu", |_, (strip,)| smooth(strip)).build();
    let encode = runtime
        .codelet::<(ReadWrite<u64>, Read<[u8]>), Counted>("encode")
        .cpu("encode_cpu", |_, (film, frame)| encode(film, frame))
        .build();
    let (state, film) = (runtime.register(1), runtime.register(0));
    let (in_memory, mut most) = (Arc::new(AtomicUsize::new(0)), 0);
    for _ in 0..frames {
        let frame = runtime.array(vec![0_u8; WIDTH * HEIGHT]);
        most = most.max(in_memory.fetch_add(1, SeqCst) + 1);
        runtime.task(&decode, (&state, &frame)).submit()?;
        for strip in &frame.partition(&Plan::chunks(WIDTH * HEIGHT / STRIPS))? {
            runtime.task(&smooth, (strip,)).submit()?;
        }
        // The last handles of the frame are those of its tasks.
        runtime.task_with(&encode, Counted(Arc::clone(&in_memory)), (&film, &frame)).submit()?;
    }
    let film = *runtime.read(&film)?;
    Ok((film, most))
}

/// The film by rayon, with at most `bound` frames in memory.
fn film_by_rayon(frames: usize, bound: usize) -> u64 {
    let half = (bound / 2).max(1);
    let (mut state, mut film) = (1, 0);
    let mut decoded: Vec<Vec<u8>> = Vec::new();
    for begin in (0..frames + half).step_by(half) {
        let coming = half.min(frames.saturating_sub(begin));
        let decode_next = || {
            let mut next = vec![vec![0_u8; WIDTH * HEIGHT]; coming];
            next.iter_mut().for_each(|frame| decode(&mut state, frame));
            next
        };
        let finish = || {
            let strips = decoded.par_iter_mut().flat_map(|frame| frame.par_chunks_mut(WIDTH * HEIGHT / STRIPS));
            strips.for_each(smooth);
            decoded.iter().for_each(|frame| encode(&mut film, frame));
        };
        decoded = rayon::join(decode_next, finish).0;
    }
    film
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let mut number = |default| arguments.next().unwrap_or(Ok(default));
    let (frames, bound) = (number(200)?, number(24)?.max(1));
    let (made, took) = least(|| film(frames, bound));
    let (film, most) = made?;
    let (by_rayon, rayon_took) = least(|| film_by_rayon(frames, bound));
    let began = Instant::now();
    let (mut state, mut plain, mut frame) = (1, 0, vec![0; WIDTH * HEIGHT]);
    for _ in 0..frames {
        decode(&mut state, &mut frame);
        smooth(&mut frame);
        encode(&mut plain, &frame);
    }
    let plainly = began.elapsed();
    println!("{frames} frames in {took:.1?}, {rayon_took:.1?} by rayon, {plainly:.1?} plainly");
    println!("at most {most} of them in memory at once");
    assert_eq!((film, by_rayon), (plain, plain), "the film is that of plain loops");
    // Each frame in memory has a task in flight, except the one that is being submitted.
    assert!(most <= bound + 1, "no more than the bound");
    Ok(())
}
