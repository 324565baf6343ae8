//! What is asked of a machine: what is at a path, what is in it, and to take what comes.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use agent::tree::{CHUNK_BYTES_MAX, Header, Kind, Trouble};
use agent::{Depth, Refusal, Request, Strings, Task, block};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::malformed;
use super::place::split;
use super::progress::Progress;
use super::records::{CANNOT_READ, Chunks, Reader, Record, Writer};
use crate::agent::call::{Call, Ending};
use crate::copy_error::{CopyError, why};
use crate::failure::Failure;

/// Links at the end of a path that are followed, as many as Linux does.
const LINKS_MAX: u32 = 40;
/// Bytes of a file that is wanted as a whole, at most.
const FETCHED_BYTES_MAX: usize = 1 << 20;
/// Files of a list, at most: more than a machine has processes.
const LISTED_MAX: usize = 1 << 16;
/// How often somebody who waits looks whether there was an interrupt.
const POLL: Duration = Duration::from_millis(100);
/// Sentences about files that were not copied, at most.
const TROUBLES_MAX: usize = 1000;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    Folder,
    File,
    /// With its text.
    Symlink(Vec<u8>),
}

impl At {
    pub(super) fn is_folder(&self) -> bool {
        *self == Self::Folder
    }
}

/// What was copied.
pub(super) struct Copied {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Sentences about what was not.
    pub(super) troubles: Vec<String>,
}

/// A request for paths in a machine.
fn call(name: &str, task: Task, paths: &[&[u8]]) -> Result<Call, Failure> {
    let too_long = || Failure::from(CopyError::TooLong);
    let arguments = block(paths.iter().copied()).ok_or_else(too_long)?;
    let request = Request {
        task,
        has_input: task == Task::Receive,
        arguments: Strings::of_block(&arguments).ok_or_else(too_long)?,
        ..Request::default()
    };
    Call::begin(name, &request)?.ok_or_else(too_long)
}

/// Why a call whose stream ended too early did so.
fn cut(name: &str, ending: Ending) -> Failure {
    let machine = name.to_string();
    let error = match ending {
        Ending::Refused(refusal) => CopyError::Refused {
            machine,
            reason: match refusal {
                Refusal::TooMany => {
                    "it runs as many commands as it can, so wait until one has ended"
                }
                Refusal::OutOfMemory => "it has too little memory, of which -m gives it more",
                _ => "its kernel does not know how, which is older than this sietch",
            },
        },
        Ending::Exit(_) | Ending::Lost => CopyError::Ended(machine),
    };
    error.into()
}

/// What is at `path`, following a link at its end or not; `None` if nothing is.
pub(super) fn look(name: &str, path: &[u8], follows: bool) -> Result<Option<At>, Failure> {
    let depth = Depth::Look;
    let mut reader = Reader::new(call(name, Task::Send { depth, follows }, &[path])?);
    let Ok(record) = reader.record() else {
        return Err(cut(name, reader.get_ref().ending()));
    };
    match record.header.kind {
        Kind::Folder => Ok(Some(At::Folder)),
        Kind::Symlink => Ok(Some(At::Symlink(record.target))),
        Kind::Trouble => match Trouble::of_code(record.header.mode) {
            Trouble::NotFound | Trouble::NotFolder => Ok(None),
            trouble => Err(CopyError::NotTaken {
                machine: name.into(),
                name: String::from_utf8_lossy(path).into_owned(),
                trouble,
            }
            .into()),
        },
        _ => Ok(Some(At::File)),
    }
}

/// Where `path` leads if links at its end are followed, also those that lead to nothing.
pub(super) fn followed(name: &str, path: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut path = path.to_vec();
    for _ in 0..LINKS_MAX {
        match look(name, &path, false)? {
            Some(At::Symlink(target)) if target.starts_with(b"/") => path = target,
            Some(At::Symlink(target)) => path = [split(&path).0, b"/", &target].concat(),
            _ => break,
        }
    }
    Ok(path)
}

/// A file of a machine that is no folder's business: what a list or a text says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name in the folder, or empty for what was asked for itself.
    pub name: Vec<u8>,
    /// Its owner.
    pub uid: u32,
    /// Its bytes, if they were asked for.
    pub bytes: Vec<u8>,
}

/// What is in a folder of a machine.
pub fn listing(name: &str, folder: &[u8]) -> Result<Vec<Found>, Failure> {
    let depth = Depth::List;
    let task = Task::Send {
        depth,
        follows: true,
    };
    let found = read_all(name, task, &[folder])?;
    Ok(found.into_iter().flatten().collect())
}

/// The bytes of files of a machine, as many as a text has; `None` for one that is not there.
pub fn fetch(name: &str, paths: &[&[u8]]) -> Result<Vec<Option<Found>>, Failure> {
    let depth = Depth::All;
    let task = Task::Send {
        depth,
        follows: true,
    };
    read_all(name, task, paths)
}

fn read_all(name: &str, task: Task, paths: &[&[u8]]) -> Result<Vec<Option<Found>>, Failure> {
    let mut reader = Reader::new(BufReader::new(call(name, task, paths)?));
    let mut all = Vec::new();
    'records: loop {
        if all.len() > LISTED_MAX {
            return Err(Failure::Lost(malformed()));
        }
        let Ok(record) = reader.record() else {
            return Err(cut(name, reader.get_ref().get_ref().ending()));
        };
        let mut bytes = Vec::new();
        match record.header.kind {
            Kind::End => return Ok(all),
            Kind::Trouble => {
                all.push(None);
                continue;
            }
            Kind::File => loop {
                match reader.chunk() {
                    Ok([]) => break,
                    Ok(chunk) if bytes.len() < FETCHED_BYTES_MAX => bytes.extend_from_slice(chunk),
                    Ok(_) => {}
                    // The trouble that comes next stands for it: there is one answer for a path.
                    Err(error) if error.kind() == CANNOT_READ => continue 'records,
                    Err(_) => return Err(cut(name, reader.get_ref().get_ref().ending())),
                }
            },
            _ => {}
        }
        all.push(Some(Found {
            name: record.name,
            uid: record.header.uid,
            bytes,
        }));
    }
}

/// What has the name `name` in the tree at `path`, for people.
fn shown(path: &[u8], name: &[u8]) -> String {
    let slash: &[u8] = match name.is_empty() || path.ends_with(b"/") {
        true => b"",
        false => b"/",
    };
    let text = String::from_utf8_lossy(&[path, slash, name].concat()).into_owned();
    // Programs of the machine make names up, and terminals obey some characters.
    text.replace(char::is_control, "?")
}

/// Ends a call when somebody interrupts; whether somebody has.
fn heed(call: &Call) -> io::Result<Arc<AtomicBool>> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    let (flag, cutter) = (is_interrupted.clone(), call.cutter()?);
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            flag.store(true, Ordering::Relaxed);
            cutter();
        }
    });
    Ok(is_interrupted)
}

/// Chunks that are counted on their way.
struct Counted<'a, R> {
    reader: &'a mut Reader<R>,
    progress: &'a mut Progress,
    is_over: bool,
}

impl<R: io::Read> Chunks for Counted<'_, R> {
    fn next(&mut self) -> io::Result<&[u8]> {
        let chunk = match self.reader.chunk() {
            Err(error) if error.kind() == CANNOT_READ => {
                self.is_over = true;
                return Err(error);
            }
            chunk => chunk?,
        };
        self.progress.add(chunk.len() as u64);
        self.is_over = chunk.is_empty();
        Ok(chunk)
    }
}

/// Lets a machine send what is at `path`; `take` gets each record, and for a file its chunks.
pub(super) fn send(
    name: &str,
    path: &[u8],
    follows: bool,
    mut progress: Progress,
    mut take: impl FnMut(&Record, &mut dyn Chunks) -> Result<(), Failure>,
) -> Result<Copied, Failure> {
    let depth = Depth::All;
    let call = call(name, Task::Send { depth, follows }, &[path])?;
    let is_interrupted = heed(&call).map_err(Failure::Lost)?;
    let mut reader = Reader::new(BufReader::with_capacity(2 * CHUNK_BYTES_MAX, call));
    let (mut files, mut troubles, mut untold) = (0, Vec::new(), 0_u64);
    let is_cut = |ending| match is_interrupted.load(Ordering::Relaxed) {
        true => CopyError::Interrupted.into(),
        false => cut(name, ending),
    };
    loop {
        let Ok(record) = reader.record() else {
            return Err(is_cut(reader.get_ref().get_ref().ending()));
        };
        let shown = || shown(path, &record.name);
        match record.header.kind {
            Kind::End => {
                let bytes = progress.done();
                if untold > 0 {
                    troubles.push(format!("{untold} further files were not copied."));
                }
                return Ok(Copied {
                    files,
                    bytes,
                    troubles,
                });
            }
            Kind::Trouble | Kind::Special if troubles.len() >= TROUBLES_MAX => untold += 1,
            Kind::Trouble => {
                let why = why(Trouble::of_code(record.header.mode));
                troubles.push(format!("{name}:{} was not copied: {why}.", shown()));
            }
            Kind::Special => troubles.push(format!(
                "{name}:{} was not copied: it is a device, a named pipe or a socket.",
                shown()
            )),
            Kind::Folder | Kind::File | Kind::Symlink => {
                let is_file = record.header.kind == Kind::File;
                files += u64::from(is_file);
                let mut chunks = Counted {
                    reader: &mut reader,
                    progress: &mut progress,
                    is_over: !is_file,
                };
                let taken = take(&record, &mut chunks);
                let is_over = chunks.is_over;
                match taken {
                    Ok(()) if is_over => {}
                    Ok(()) => return Err(Failure::Lost(malformed())),
                    // The former file stays; the next record says why.
                    Err(Failure::Lost(error)) if error.kind() == CANNOT_READ => files -= 1,
                    Err(Failure::Lost(_)) => {
                        return Err(is_cut(reader.get_ref().get_ref().ending()));
                    }
                    Err(failure) => return Err(failure),
                }
            }
            Kind::Parent | Kind::Link => return Err(Failure::Lost(malformed())),
        }
    }
}

/// What the thread that gives has come to. A machine that has its last word too early, while that one waits for standard input, is
/// left by an interrupt.
fn given_by(
    thread: &mpsc::Receiver<Result<Copied, Failure>>,
    is_interrupted: &AtomicBool,
    name: &str,
) -> Result<Copied, Failure> {
    loop {
        match thread.recv_timeout(POLL) {
            Ok(given) => return given,
            Err(RecvTimeoutError::Disconnected) => return Err(cut(name, Ending::Lost)),
            Err(RecvTimeoutError::Timeout) if is_interrupted.load(Ordering::Relaxed) => {
                return Err(CopyError::Interrupted.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Sends a machine what `give` writes, to be put into `folder`.
pub(super) fn receive(
    name: &str,
    folder: &[u8],
    mut progress: Progress,
    give: impl FnOnce(&mut Writer<'_>) -> Result<Vec<String>, Failure> + Send + 'static,
) -> Result<Copied, Failure> {
    let call = call(name, Task::Receive, &[folder])?;
    let is_interrupted = heed(&call).map_err(Failure::Lost)?;
    let input = call.input();
    let (tell, given) = mpsc::channel();
    // The machine may say that it takes no more while this waits for room in its window, or for standard input.
    thread::spawn(move || {
        let mut buffered = BufWriter::with_capacity(2 * CHUNK_BYTES_MAX, input);
        let mut note = |bytes| progress.add(bytes);
        let mut writer = Writer::new(&mut buffered, &mut note);
        let done = give(&mut writer).and_then(|troubles| {
            writer.end().map_err(Failure::Lost)?;
            Ok((writer.files, troubles))
        });
        let bytes = progress.done();
        drop(progress);
        // Before the machine can say that its input was cut. Nobody waits if it has said the last word.
        let _ = tell.send(done.map(|(files, troubles)| Copied {
            files,
            bytes,
            troubles,
        }));
        // What was not written yet is not to be.
        let (input, _) = buffered.into_parts();
        input.end();
    });
    let mut reader = Reader::new(call);
    let refused = reader.record();
    let ending = match &refused {
        // The last word comes next.
        Ok(_) => reader.record().err().map(|_| reader.get_ref().ending()),
        Err(_) => Some(reader.get_ref().ending()),
    };
    if is_interrupted.load(Ordering::Relaxed) {
        return Err(CopyError::Interrupted.into());
    }
    match (refused, ending) {
        (Err(_), Some(Ending::Exit(0))) => given_by(&given, &is_interrupted, name),
        (Ok(record), _) if record.header.kind == Kind::Trouble => {
            // What this side failed with comes first: a stream that is cut is its consequence.
            match given.try_recv() {
                Ok(Err(failure)) if !matches!(failure, Failure::Lost(_)) => return Err(failure),
                _ => {}
            }
            Err(CopyError::NotTaken {
                machine: name.into(),
                name: shown(folder, &record.name),
                trouble: Trouble::of_code(record.header.mode),
            }
            .into())
        }
        (_, ending) => match given.try_recv() {
            Ok(Err(failure)) if !matches!(failure, Failure::Lost(_)) => Err(failure),
            _ => Err(cut(name, ending.unwrap_or(Ending::Lost))),
        },
    }
}

/// A file of a machine into a device or a named pipe of this host.
pub(super) fn into_device(
    name: &str,
    from: &[u8],
    to: &Path,
    follows: bool,
) -> Result<Copied, Failure> {
    let file = OpenOptions::new().write(true).open(to);
    let mut file = file.map_err(Failure::file(to))?;
    send(
        name,
        from,
        follows,
        Progress::new(true),
        |record, chunks| {
            if record.header.kind != Kind::File {
                return Err(CopyError::OverFile(to.display().to_string()).into());
            }
            copy_chunks(chunks, |chunk| {
                file.write_all(chunk).map_err(Failure::file(to))
            })
        },
    )
}

/// Gives each chunk of a file to `take`.
pub(super) fn copy_chunks(
    chunks: &mut dyn Chunks,
    mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        match chunks.next() {
            Ok([]) => return Ok(()),
            Ok(chunk) => take(chunk)?,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Err(Failure::Lost(error));
            }
            Err(error) => return Err(Failure::Lost(error)),
        }
    }
}

/// A path of this host for its bytes.
pub(super) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A header with what this host says of a file.
pub(super) fn header_of(kind: Kind, file: &std::fs::Metadata, keeps_owner: bool) -> Header {
    use std::os::unix::fs::MetadataExt;
    // A set-id program of somebody else's is not to become root's.
    let (uid, gid, mode_mask) = match keeps_owner {
        true => (file.uid(), file.gid(), 0o7777),
        false => (0, 0, 0o1777),
    };
    Header {
        mode: (file.mode() & mode_mask) as u16,
        uid,
        gid,
        modified: (file.mtime(), u32::try_from(file.mtime_nsec()).unwrap_or(0)),
        size: file.size(),
        ..Header::of(kind)
    }
}
