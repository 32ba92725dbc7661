//! The `sched` command.

fn main() -> std::process::ExitCode {
    sched_cli::main()
}
