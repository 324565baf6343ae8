//! What the machines of a project wrote, each line with its service.

use std::fs::File;
use std::io::{self, Read, Take, Write};
use std::thread;

use super::POLL;
use crate::compose::Project;
use crate::compose::service::Service;
use crate::log::{Lines, PIECE_BYTES};
use crate::state::Folder;

/// A service's log, as far as it was shown.
struct Log<'a> {
    service: &'a Service,
    file: Option<Take<File>>,
    lines: Lines,
}

/// Shows it; with `follow` until all machines have ended. It ends at once when nobody reads any more.
pub fn show(project: &Project, follow: bool) {
    let services = project.services.iter();
    let mut logs: Vec<Log> = services.map(|service| Log::open(service, follow)).collect();
    let names = project.services.iter().map(|own| own.name.len());
    let width = names.max().unwrap_or(0);
    loop {
        // Looked at before the logs, so that last words are shown too.
        let is_served = |service: &Service| {
            let settings = Folder::of(&service.machine).settings();
            settings.is_some_and(|settings| settings.is_served())
        };
        let goes_on = follow && project.services.iter().any(is_served);
        if show_all(&mut logs, width, goes_on).is_err() || !goes_on {
            return;
        }
        thread::sleep(POLL);
    }
}

/// Shows what is new, a piece of each in turn: one that is written fast keeps none of the others waiting.
fn show_all(logs: &mut [Log], width: usize, goes_on: bool) -> io::Result<()> {
    let mut is_any = true;
    while is_any {
        is_any = false;
        for log in logs.iter_mut() {
            is_any |= log.show_piece(width)?;
        }
    }
    match goes_on {
        true => Ok(()),
        false => logs.iter_mut().try_for_each(|log| log.end(width)),
    }
}

impl<'a> Log<'a> {
    /// Of what there is now only, unless it is followed.
    fn open(service: &'a Service, follow: bool) -> Self {
        let file = File::open(Folder::of(&service.machine).console_log()).ok();
        let len = |file: &File| file.metadata().map_or(0, |known| known.len());
        Self {
            service,
            file: file.map(|file| {
                let len = if follow { u64::MAX } else { len(&file) };
                file.take(len)
            }),
            lines: Lines::default(),
        }
    }

    /// Shows what is new, [`PIECE_BYTES`] at the most; whether there was something.
    fn show_piece(&mut self, width: usize) -> io::Result<bool> {
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let mut piece = vec![0; PIECE_BYTES];
        let len = file.read(&mut piece).unwrap_or(0);
        let (name, mut shown) = (&self.service.name, Ok(()));
        self.lines.add(&piece[..len], |line| {
            if shown.is_ok() {
                shown = print(name, line, width);
            }
        });
        shown.map(|()| len > 0)
    }

    fn end(&mut self, width: usize) -> io::Result<()> {
        let (name, mut shown) = (&self.service.name, Ok(()));
        self.lines.end(|line| shown = print(name, line, width));
        shown
    }
}

fn print(service: &str, line: &[u8], width: usize) -> io::Result<()> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end_matches(['\n', '\r']);
    writeln!(io::stdout(), "{service:<width$} | {text}")
}
