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
    record(wish(flags)?, seconds(flags.seconds))
}

/// That many seconds; for ever if there are no such.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Records for so long, or until a signal.
pub(super) fn record(wish: Wish, duration: Duration) -> Result<u8, Failure> {
    let mut recording = Recording::ask(wish)?;
    // A signal ends the recording early; the machine must not go on with it.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, interrupted.clone()).map_err(Failure::Lost)?;
    }
    let start = Instant::now();
    let goes_on = || start.elapsed() < duration && !interrupted.load(Ordering::Relaxed);
    let recorded = recording.record(goes_on);
    recording.stop()?;
    recorded?;
    eprintln!("sietch: {}", recording.finish()?);
    Ok(0)
}

fn wish(flags: &ProfileFlags) -> Result<Wish, Failure> {
    let format = format(flags);
    let default = || PathBuf::from(format!("{}.{}", flags.name, format.extension()));
    let path = flags.output.clone().unwrap_or_else(default);
    let waits = flags.off_cpu;
    wish_of(&flags.name, waits, path, format)
}

/// What to record of the running machine `name`.
pub(super) fn wish_of(
    name: &str,
    waits: bool,
    path: PathBuf,
    format: Format,
) -> Result<Wish, Failure> {
    let folder = Folder::of(name);
    let settings = folder
        .running()
        .ok_or_else(|| Failure::NoSuchMachine { name: name.into() })?;
    Ok(Wish {
        name: name.into(),
        folder: folder.path().into(),
        kernel: settings.kernel,
        waits,
        path,
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
