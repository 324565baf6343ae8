//! Counts what a request costs under KVM, on Sietch and on Linux.
//!
//! Where the processor does not virtualise, KVM still does in an emulated one (`nested`): its
//! counts are exact, its times are not. So the page that this program writes, `docs/bench-kvm.md`,
//! has the exits of a request by their causes, and beside them what they and the request's
//! instructions would take on hardware (`model`). Time and rates stand there as ratios.

#![forbid(unsafe_code)]

mod exits;
mod load;
mod meter;
mod model;
mod page;
mod run;

use std::process::ExitCode;

use clap::Parser;

/// Counts what a request costs under KVM, on Sietch and on Linux.
#[derive(Debug, Parser)]
struct Flags {
    /// Boot the host and its guests, then run each line of standard input in the host's shell;
    /// `start NAME` and `stop NAME` are for guests
    #[arg(long)]
    shell: bool,
    /// Measure a tenth, to see whether everything works; no page is written
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let done = match flags.shell {
        true => run::shell(),
        false => measure(flags.quick),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-kvm: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn measure(quick: bool) -> Result<(), String> {
    bench_pair::set_up(&[bench_pair::Kernel::Cloud])?;
    let figures = run::measure(quick)?;
    let modelled = model::measure(&figures)?;
    let text = page::text(&figures, &modelled);
    println!("{text}");
    match quick {
        true => Ok(()),
        false => bench_pair::page::write("docs/bench-kvm.md", &text),
    }
}
