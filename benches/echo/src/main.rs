//! Counts the guest's instructions for each packet and says what they are for, Sietch beside
//! Debian's Linux.
//!
//!     cargo run --release -p bench-echo        (`make bench` does it too)
//!
//! A plugin of QEMU's translator (`plugin/count.c`) counts how often each instruction of the
//! guest is executed. What was executed while datagrams were echoed is added up by the classes
//! of Table 1 of "Arrakis: The Operating System is the Control Plane" (OSDI 2014): the way
//! through the network stack, the scheduler, the copies, the crossing into the kernel and back.
//! The function that an instruction belongs to names its class (`classes/`). The same counts
//! compare network cards: instructions for a request to Redis behind each (`cards`).
//!
//! Counts do not depend on how fast the host is, only how many packets gather before the guest
//! looks does; it differs by a few in a hundred from run to run.
//!
//! The tables go to standard output and to `docs/bench-echo.md`; `--functions` lists the
//! functions behind them instead, and `--sietch` leaves Linux out, which halves the time.
//! `--beside` counts Sietch alone: what a VNIC beside the card costs, idle and in use (`beside`);
//! `--bypass` what programs cost whose network is their own by `libsietch.so`;
//! `--iommu` what it costs that devices are behind an IOMMU; `--rings` an echo by a program that moves
//! a VNIC's frames itself (`rings`); `--uring` one by io_uring (`uring`); `--calls` the system calls of programs whose
//! network is their own (`calls`); `--own` puts all ways beside Linux and writes `docs/bench-bypass.md`.

#![forbid(unsafe_code)]

mod beside;
mod calls;
mod cards;
mod classes;
mod echo;
mod functions;
mod own;
mod page;
mod rings;
mod silence;
mod uring;

use std::process::ExitCode;

use bench_pair::{Kernel, System};
use beside::Difference;
use clap::Parser;

/// Counts the guest's instructions for a packet by what they are for, beside Debian's Linux.
#[derive(Debug, Parser)]
struct Flags {
    /// List each system's functions that cost most, with their classes, and write no page
    #[arg(long)]
    functions: bool,
    /// Count Sietch only
    #[arg(long, requires = "functions")]
    sietch: bool,
    /// Count what a VNIC beside the card costs, and write no page
    #[arg(long, conflicts_with = "sietch")]
    beside: bool,
    /// Count what a network of a program's own costs, and write no page
    #[arg(long, conflicts_with_all = ["sietch", "beside"])]
    bypass: bool,
    /// Count what an IOMMU costs, and write no page
    #[arg(long, conflicts_with_all = ["sietch", "beside", "bypass"])]
    iommu: bool,
    /// Count an echo by programs whose network is their own, beside Linux, and write docs/bench-bypass.md
    #[arg(long, conflicts_with_all = ["functions", "sietch", "beside", "bypass", "iommu", "rings"])]
    own: bool,
    /// Count an echo by a program that owns a VNIC's rings, and write no page
    #[arg(long, conflicts_with_all = ["sietch", "beside", "bypass", "iommu"])]
    rings: bool,
    /// Count an echo by io_uring beside Linux, and write no page; with --functions list what it costs ours
    #[arg(long, conflicts_with_all = ["sietch", "beside", "bypass", "iommu", "own", "rings"])]
    uring: bool,
    /// Count the system calls of programs whose network is their own, and write no page
    #[arg(long, conflicts_with_all = ["functions", "sietch", "beside", "bypass", "iommu", "own", "rings", "uring"])]
    calls: bool,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match count(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("bench-echo: {sentence}");
            ExitCode::FAILURE
        }
    }
}

fn count(flags: &Flags) -> Result<(), String> {
    if flags.own {
        bench_pair::set_up(&[Kernel::Cloud])?;
        beside::reach_vnic()?;
        print!("{}", own::write()?);
        return Ok(());
    }
    if flags.uring {
        bench_pair::set_up(&[Kernel::Cloud])?;
        beside::reach_vnic()?;
        print!("{}", uring::count(flags.functions)?);
        return Ok(());
    }
    if flags.calls {
        bench_pair::set_up(&[])?;
        beside::reach_vnic()?;
        print!("{}", calls::count()?);
        return Ok(());
    }
    if flags.rings {
        bench_pair::set_up(&[])?;
        print!("{}", rings::count(flags.functions)?);
        return Ok(());
    }
    let difference = match flags {
        Flags { beside: true, .. } => Some(Difference::Vnic),
        Flags { bypass: true, .. } => Some(Difference::Bypass),
        Flags { iommu: true, .. } => Some(Difference::Iommu),
        _ => None,
    };
    if let Some(difference) = difference {
        bench_pair::set_up(&[])?;
        print!("{}", beside::count(difference, flags.functions)?);
        return Ok(());
    }
    let (systems, kernels) = match flags.sietch {
        true => (&System::BOTH[1..], vec![]),
        false => (&System::BOTH[..], vec![Kernel::Cloud]),
    };
    bench_pair::set_up(&kernels)?;
    let counts = echo::count(systems)?;
    if flags.functions {
        print!("{}", functions::list(&counts));
        print!("{}", functions::of_requests(&cards::functions()?));
        return Ok(());
    }
    let echoes = page::echoes(&counts);
    println!("{echoes}");
    let cards = page::cards(&cards::count()?);
    println!("{cards}");
    page::write(&echoes, &cards)
}
