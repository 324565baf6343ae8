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
mod own_page;
mod page;
mod run;
mod subject;

use std::process::ExitCode;

use clap::Parser;

use subject::Subject;

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
    /// Measure networks that are programs' own instead, for docs/bench-bypass-kvm.md; only of some SERVERS
    #[arg(long, value_name = "SERVER", num_args = 0.., value_parser = load::NAMES)]
    own: Option<Vec<String>>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let done = match (flags.shell, flags.own) {
        (true, None) => set_up().and_then(|()| run::shell(&Subject::SYSTEMS, load::servers()?)),
        (true, Some(servers)) => shell_own(&servers),
        (false, None) => measure(flags.quick),
        (false, Some(servers)) => measure_own(&servers, flags.quick),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-kvm: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn set_up() -> Result<(), String> {
    // The namespace has no way to the archive.
    nested::prepare()?;
    bench_pair::set_up(&[])
}

fn measure(quick: bool) -> Result<(), String> {
    set_up()?;
    let figures = run::measure(&Subject::SYSTEMS, load::servers()?, quick)?;
    let modelled = model::measure(&figures)?;
    write("docs/bench-kvm.md", &page::text(&figures, &modelled), quick)
}

fn measure_own(names: &[String], quick: bool) -> Result<(), String> {
    set_up()?;
    let figures = run::measure(&Subject::NETWORKS, servers_of(names)?, quick)?;
    let text = own_page::text(&figures, names);
    write("docs/bench-bypass-kvm.md", &text, quick)
}

fn shell_own(names: &[String]) -> Result<(), String> {
    set_up()?;
    run::shell(&Subject::NETWORKS, servers_of(names)?)
}

/// Those of these names; all if there are none.
fn servers_of(names: &[String]) -> Result<Vec<load::Server>, String> {
    let mut servers = load::servers()?;
    servers.retain(|server| names.is_empty() || names.iter().any(|name| name == server.name()));
    Ok(servers)
}

fn write(path: &str, text: &str, quick: bool) -> Result<(), String> {
    println!("{text}");
    match quick {
        true => Ok(()),
        false => bench_pair::page::write(path, text),
    }
}
