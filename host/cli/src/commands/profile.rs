//! `sietch profile`: draws what a running machine does.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::flags::ProfileFlags;
use crate::profile::{Format, Recording, Wish};
use crate::state::Folder;

/// Runs the command.
pub fn profile(flags: &ProfileFlags) -> Result<u8, Failure> {
    let mut recording = Recording::ask(wish(flags)?)?;
    // A signal ends the recording early; the machine must not go on with it.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone()).map_err(Failure::Lost)?;
    }
    let duration = Duration::try_from_secs_f64(flags.seconds).unwrap_or(Duration::MAX);
    let start = Instant::now();
    recording.record(|| start.elapsed() < duration && !interrupted.load(Ordering::Relaxed))?;
    recording.stop()?;
    eprintln!("sietch: {}", recording.finish()?);
    Ok(0)
}

fn wish(flags: &ProfileFlags) -> Result<Wish, Failure> {
    let folder = Folder::of(&flags.name);
    let settings = folder.running().ok_or_else(|| Failure::NoSuchMachine {
        name: flags.name.clone(),
    })?;
    let format = format(flags);
    let default = || PathBuf::from(format!("{}.{}", flags.name, format.extension()));
    Ok(Wish {
        name: flags.name.clone(),
        folder: folder.path().into(),
        kernel: settings.kernel,
        waits: flags.off_cpu,
        path: flags.output.clone().unwrap_or_else(default),
        format,
    })
}

fn format(flags: &ProfileFlags) -> Format {
    match (&flags.output, flags.folded, flags.perf_script) {
        (_, true, _) => Format::Folded,
        (_, _, true) => Format::PerfScript,
        (Some(path), ..) => Format::of_name(path),
        (None, ..) => Format::FlameGraph,
    }
}
