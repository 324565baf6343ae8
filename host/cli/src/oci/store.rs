//! The user's store of images, and the tools and the terminal that it needs.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use images::{Image, Name, Reference, Root, Stage, Store};

use crate::failure::Failure;
use crate::flags::{PullFlag, RunFlags, told};
use crate::pack::program;
use crate::state;
use crate::volumes::tools;

/// What is to be run.
#[derive(Debug)]
pub enum Choice {
    /// A program of this host, or of a root that the user gives.
    Program,
    /// An image.
    Image(Reference),
}

/// The store, beside the user's volumes.
///
/// Errors: `NoDataFolder`.
pub fn of_user() -> Result<Store, Failure> {
    state::data_folder("images").map(Store::new)
}

/// A transport says that it is an image, and so does a tag; a bare name is a program of the host or, if there is none, an
/// image of the store.
pub fn choose(flags: &RunFlags) -> Result<Choice, Failure> {
    let typed = flags.program.program();
    if flags.root.is_own() {
        return Ok(Choice::Program);
    }
    if let Some(reference) = Reference::with_transport(typed) {
        return Ok(Choice::Image(reference?));
    }
    if program::find(typed).is_ok() {
        return Ok(Choice::Program);
    }
    Ok(match typed.parse::<Name>() {
        Ok(name) if name.as_str() == typed || of_user()?.find(&name)?.is_some() => {
            Choice::Image(Reference::Stored(name))
        }
        _ => Choice::Program,
    })
}

/// Brings an image into the store, unless it is there.
pub fn fetch(store: &Store, reference: &Reference) -> Result<(Name, Image), Failure> {
    let mut line = Line::default();
    Ok(store.fetch(reference, &mut |stage, done, whole| {
        line.tell(stage, done, whole)
    })?)
}

/// Brings the image of a machine, as `--pull` and `--quiet` say.
pub(super) fn fetch_as(
    store: &Store,
    reference: &Reference,
    flags: &RunFlags,
) -> Result<(Name, Image), Failure> {
    let kept = match flags.pull {
        PullFlag::Missing | PullFlag::Never => store.kept(reference)?,
        PullFlag::Always | PullFlag::Newer => None,
    };
    match (kept, flags.pull) {
        (Some(kept), _) => Ok(kept),
        (None, PullFlag::Never) => Err(Failure::NotPulled {
            name: flags.program.program().into(),
        }),
        (None, _) => persistently(flags, || match flags.quiet {
            true => Ok(store.fetch(reference, &mut |_, _, _| ())?),
            false => fetch(store, reference),
        }),
    }
}

/// Again, as `--retry` says, while a registry does not answer.
fn persistently<T>(flags: &RunFlags, work: impl Fn() -> Result<T, Failure>) -> Result<T, Failure> {
    let delay = flags.retry_delay.map_or(RETRY_DELAY, |span| span.0);
    for _ in 0..flags.retry {
        match work() {
            Err(Failure::Image(error)) if error.is_of_registry() => std::thread::sleep(delay),
            done => return done,
        }
    }
    work()
}

/// The image's disk.
pub(super) fn root(store: &Store, image: &Image) -> Result<Root, Failure> {
    let mke2fs: PathBuf = tools::path("mke2fs")?;
    let mut line = Line::default();
    let mut tell = |stage, done, whole| line.tell(stage, done, whole);
    Ok(store.root(image, &mke2fs, &mut tell)?)
}

/// A line on the terminal that says how far something is, and goes when this is dropped.
struct Line {
    next: Instant,
    is_shown: bool,
    has_terminal: bool,
}

/// Between two tries of `--retry`.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// What takes less needs no word.
const SILENCE: Duration = Duration::from_millis(500);
/// Between two words.
const PERIOD: Duration = Duration::from_millis(100);

impl Default for Line {
    fn default() -> Self {
        Self {
            next: Instant::now() + SILENCE,
            is_shown: false,
            has_terminal: io::stderr().is_terminal(),
        }
    }
}

impl Line {
    fn tell(&mut self, stage: Stage, done: u64, whole: u64) {
        if !self.has_terminal || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PERIOD;
        self.is_shown = true;
        // A terminal that is gone needs no telling.
        let _ = write!(
            io::stderr(),
            "\r\x1b[Ksietch: {}",
            sentence(stage, done, whole)
        );
    }
}

fn sentence(stage: Stage, done: u64, whole: u64) -> String {
    match stage {
        Stage::Copying => format!("The image is copied: {} of {}", told(done), told(whole)),
        Stage::Reading => format!("The image's layers are read: {done} of {whole}"),
        Stage::Writing => format!("The image's disk is made: {done} of {whole} files"),
        Stage::Flushing => "The image's disk is flushed".into(),
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_is_told_in_its_own_unit() {
        assert!(sentence(Stage::Copying, 1 << 20, 1 << 21).ends_with("1 MiB of 2 MiB"));
        assert!(sentence(Stage::Writing, 1, 9).ends_with("1 of 9 files"));
    }
}
