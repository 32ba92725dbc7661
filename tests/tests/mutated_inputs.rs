//! Whatever is in a file, its reader returns a value or an error that can be shown: it never panics, and its steps are
//! bounded.
//!
//! Small valid inputs are mutated, always in the same ways: the number of an input is the seed of its mutations.
//! `SCHED_MUTATIONS=2500` reads that many inputs with each reader instead of [`INPUTS`]; `SCHED_MUTATION=17` reads only
//! this one. The input that is read is in a file of the folder for temporary files of the build, where it remains if it
//! ends the process.

#[path = "mutated_inputs/mutation.rs"]
mod mutation;
#[path = "mutated_inputs/readers.rs"]
mod readers;
#[path = "mutated_inputs/steps.rs"]
mod steps;

use mutation::mutated;
use readers::Reader;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{env, fs, panic, thread};

/// Inputs of each reader.
const INPUTS: u64 = 150;

/// Maximum number of bytes that a reader may request in all, for inputs of up to some hundred thousand bytes. Loops
/// that depend on a number in the input go far beyond.
const MOST_BYTES: u64 = 1 << 30;

/// A reader that has not ended by then never does. Not a measure of speed: no input takes a hundredth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reads mutated inputs with the reader.
fn survives(reader: &'static Reader) {
    let asked = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let numbers = match asked("SCHED_MUTATION") {
        Some(number) => number..number + 1,
        None => 0..asked("SCHED_MUTATIONS").unwrap_or(INPUTS),
    };
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutated-{}", reader.name));
    let (send, received) = channel();
    let at_work = file.clone();
    thread::spawn(move || {
        for number in numbers {
            if send.send((number, read(reader, number, &at_work))).is_err() {
                return;
            }
        }
    });
    let (mut last, mut good, mut bad) = (None, 0_u64, 0_u64);
    loop {
        match received.recv_timeout(PATIENCE) {
            Ok((number, Ok(accepted))) => {
                last = Some(number);
                *(if accepted { &mut good } else { &mut bad }) += 1;
            }
            Ok((number, Err(what))) => panic!("input {number} of {}, in {}: {what}", reader.name, file.display()),
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} does not end after input {last:?}: {}", reader.name, file.display())
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Mutations must neither leave everything valid nor destroy everything.
    assert!(bad > 0 && (good > 0 || good + bad < 100), "{}: {good} accepted, {bad} refused", reader.name);
    let _ = fs::remove_file(file);
}

/// Whether the reader accepts this input, or its misbehaviour.
fn read(reader: &Reader, number: u64, file: &PathBuf) -> Result<bool, String> {
    let input = mutated(reader.seeds, number);
    fs::write(file, &input).map_err(|error| error.to_string())?;
    let before = steps::bytes_requested();
    let outcome = panic::catch_unwind(|| (reader.read)(&input, file));
    let requested = steps::bytes_requested() - before;
    match outcome {
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("the reader panics: {}", text.unwrap_or_default()))
        }
        Ok(_) if requested > MOST_BYTES => Err(format!("the reader requests {requested} bytes of memory")),
        Ok(Ok(())) => Ok(true),
        Ok(Err(shown)) if shown.trim().is_empty() => Err("the error says nothing".to_owned()),
        Ok(Err(_)) => Ok(false),
    }
}

#[test]
fn inputs_are_valid_before_they_are_mutated() {
    let folder = tempfile::tempdir().expect("a folder");
    for reader in readers::ALL {
        for seed in reader.seeds {
            let file = folder.path().join(reader.name);
            fs::write(&file, seed).expect("a file");
            assert_eq!((reader.read)(seed.as_bytes(), &file), Ok(()), "{}: {seed}", reader.name);
        }
    }
}

macro_rules! readers {
    ($($test:ident: $reader:ident),+ $(,)?) => {
        $(#[test]
        fn $test() {
            survives(&readers::$reader);
        })+
    };
}

readers! {
    policies: POLICY,
    platforms: PLATFORM,
    hwloc_xml: HWLOC_XML,
    synthetic_machines: SYNTHETIC,
    graphs_of_this_program: NATIVE_GRAPH,
    workflows: WORKFLOW,
    recorded_tasks: TASKS_REC,
    standard_task_graphs: STG,
    starpu_codelets: STARPU_CODELET,
    starpu_matrices: STARPU_MATRIX,
    stored_models: STORED_MODEL,
    stored_links: STORED_LINKS,
    matrices: MATRIX_MARKET,
    workloads: WORKLOAD,
}
