//! Values of options.

use std::time::Duration;

const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The seed.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct SeedOption {
    /// Seed of generated data and graphs, and of random choices in components
    #[arg(long, value_name = "SEED", default_value_t = 42, value_parser = seed)]
    pub(super) seed: u64,
}

/// A seed.
fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("must be a whole number from 0 to {}", u64::MAX))
}

/// A whole number from 1.
pub(super) fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("must be a whole number".to_owned()),
    }
}

/// Bytes of a number, or its precision by name, as in a run.
pub(super) fn number_bytes(text: &str) -> Result<usize, String> {
    match text {
        "single" => Ok(4),
        "double" => Ok(8),
        _ => positive(text).map_err(|error| format!("{error}, or `single` or `double`")),
    }
}

/// A whole number from 1 to `most`: more of these would not fit into memory.
pub(super) fn up_to(most: usize) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    move |text| match positive(text) {
        Ok(number) if number > most => Err(format!("must be {most} at most")),
        Err(_) if is_large(text) => Err(format!("must be {most} at most")),
        found => found,
    }
}

/// Whether it is a whole number that no type holds.
fn is_large(text: &str) -> bool {
    text.len() > 18 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A time in seconds, from a nanosecond to thirty years: all that is counted in nanoseconds.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "must be a number of seconds, such as 2 or 0.5".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(time) if !time.is_zero() && time <= LONGEST => Ok(time),
        _ => Err("must be from 1e-9 to 1e9 seconds".to_owned()),
    }
}

/// A fraction from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "must be a number from 0 to 1, such as 0.95".to_owned())
}

/// The name of a machine, which is part of file names.
pub(super) fn machine_name(text: &str) -> Result<String, String> {
    let unfit = |c: char| c == '/' || c.is_control() || c.is_whitespace();
    match text.is_empty() || text.starts_with('.') || text.contains(unfit) {
        true => Err("must be a name: without blanks and slashes, not beginning with a dot".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// The name of a policy.
pub(super) fn policy_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(char::is_control) {
        true => Err("must be a name: not empty, and without line breaks and other control characters".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_begin_at_one() {
        assert_eq!(positive("7"), Ok(7));
        assert!(["0", "-1", "1.5", "many", "99999999999999999999"].iter().all(|text| positive(text).is_err()));
    }

    #[test]
    fn counts_end_where_memory_would() {
        assert_eq!(up_to(9)("9"), Ok(9));
        for text in ["10", "99999999999", "99999999999999999999999"] {
            assert_eq!(up_to(9)(text), Err("must be 9 at most".to_owned()));
        }
        assert_eq!(up_to(9)("0"), positive("0"));
    }

    #[test]
    fn a_share_is_no_more_than_all() {
        assert_eq!(share("0.95"), Ok(0.95));
        assert!(["-0.1", "1.1", "nan", "all"].iter().all(|text| share(text).is_err()));
    }

    #[test]
    fn a_seed_is_a_whole_number() {
        assert_eq!(seed("18446744073709551615"), Ok(u64::MAX));
        for text in ["-1", "0x10", "18446744073709551616"] {
            assert_eq!(seed(text), Err("must be a whole number from 0 to 18446744073709551615".to_owned()));
        }
    }

    #[test]
    fn a_machine_has_a_name_and_no_path() {
        assert_eq!(machine_name("node7.cluster"), Ok("node7.cluster".to_owned()));
        assert!(["", ".", "..", "../..", "a/b", "a b", "a\n"].iter().all(|text| machine_name(text).is_err()));
    }

    #[test]
    fn policies_have_the_names_that_their_files_may_have() {
        for name in ["mine", "a \"b\" #c", "ü", "", "a\nb", "a\u{1b}"] {
            let policy = sched_policy::Policy { name: name.to_owned(), ..sched_policy::library()[0].policy() };
            assert_eq!(policy_name(name).is_ok(), sched_policy::parse("a.kdl", &policy.to_kdl()).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn a_time_is_a_number_of_seconds() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(["0", "-1", "nan", "inf", "1e300", "1e12", "1e-12", "2s"].iter().all(|text| seconds(text).is_err()));
    }
}
