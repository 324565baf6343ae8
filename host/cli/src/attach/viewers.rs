//! The session's end: who sees what the program writes.

use std::collections::VecDeque;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agent::{Decoder, Frame, Message, PAYLOAD_BYTES_MAX};

use super::socket;
use crate::agent::next_frame;
use crate::stdio::Window;

/// Bytes that may wait for one who reads slowly, before the program waits.
pub const QUEUE_BYTES_MAX: usize = 1 << 20;
/// Who attaches at once, at most.
const VIEWERS_MAX: usize = 64;
/// How long who is attached may take to read the last words.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How often somebody who waits for room looks whether the machine has ended.
const POLL: Duration = Duration::from_millis(100);
/// The only channel there is.
pub(super) const CHANNEL: u16 = 1;

/// Which of the program's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Descriptor 1, or the terminal.
    Out,
    /// Descriptor 2.
    Errors,
}

/// What one viewer has still to be sent.
#[derive(Debug, Default)]
struct Viewer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    bytes: VecDeque<u8>,
    /// Nothing more comes, or nobody is there.
    is_closed: bool,
    has_gone: bool,
}

impl Viewer {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame, for which there has to be room unless nobody `waits`.
    fn put(&self, frame: &[u8], waits: &dyn Fn() -> bool) {
        let mut queue = self.lock();
        while queue.bytes.len() > QUEUE_BYTES_MAX && !queue.is_closed {
            if !waits() {
                return;
            }
            // Looked at again, as the machine may end meanwhile.
            let waited = self.changed.wait_timeout(queue, POLL);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if !queue.is_closed {
            queue.bytes.extend(frame);
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// Adds the last frame whatever waits before it: it is one, and who reads is to have it.
    fn put_last(&self, frame: &[u8]) {
        let mut queue = self.lock();
        if !queue.is_closed {
            queue.bytes.extend(frame);
            queue.is_closed = true;
        }
        drop(queue);
        self.changed.notify_all();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Brings everything to `client`, until nothing more comes or it has gone.
    fn deliver(&self, mut client: &UnixStream) {
        loop {
            let mut queue = self.lock();
            while queue.bytes.is_empty() && !queue.is_closed {
                let waited = self.changed.wait(queue);
                queue = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let bytes: Vec<u8> = queue.bytes.drain(..).collect();
            drop(queue);
            self.changed.notify_all();
            if bytes.is_empty() || client.write_all(&bytes).is_err() {
                let mut queue = self.lock();
                (queue.is_closed, queue.has_gone) = (true, true);
                drop(queue);
                self.changed.notify_all();
                return;
            }
        }
    }

    /// Waits until all is delivered, or until then.
    fn wait_until(&self, deadline: Instant) {
        let mut queue = self.lock();
        while !queue.has_gone {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// What a session does with what is typed.
struct Typing {
    has_terminal: bool,
    /// Where it goes, if the program's input is open.
    input: Option<Mutex<UnixStream>>,
    resize: Mutex<Box<dyn FnMut(Window) + Send>>,
}

/// All who are attached; its clones are one.
#[derive(Clone, Debug, Default)]
pub struct Viewers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    viewers: Vec<Arc<Viewer>>,
    /// When the machine ended.
    over_since: Option<Instant>,
}

impl Viewers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for those who attach to the machine in `folder`. What they type goes to `input`, which is the terminal's if
    /// the program has one.
    pub fn serve(
        &self,
        folder: &Path,
        has_terminal: bool,
        input: Option<UnixStream>,
        resize: impl FnMut(Window) + Send + 'static,
    ) -> io::Result<()> {
        let path = socket(folder);
        // A machine of the same name that was killed has left one behind.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let typing = Arc::new(Typing {
            has_terminal,
            input: input.map(Mutex::new),
            resize: Mutex::new(Box::new(resize)),
        });
        let viewers = self.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (viewers, typing) = (viewers.clone(), typing.clone());
                thread::spawn(move || viewers.serve_client(&client, &typing));
            }
        });
        Ok(())
    }

    fn serve_client(&self, client: &UnixStream, typing: &Typing) {
        let viewer = Arc::new(Viewer::default());
        if !self.add(&viewer) {
            return;
        }
        let greeting = [
            u8::from(typing.has_terminal),
            u8::from(typing.input.is_some()),
        ];
        thread::scope(|scope| {
            let delivery = viewer.clone();
            scope.spawn(move || {
                let mut to = client;
                if to.write_all(&greeting).is_ok() {
                    delivery.deliver(client);
                }
                // Who reads the client hears of it.
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
            read(client, typing);
            viewer.close();
        });
        let is_other = |other: &Arc<Viewer>| !Arc::ptr_eq(other, &viewer);
        self.lock().viewers.retain(is_other);
    }

    fn add(&self, viewer: &Arc<Viewer>) -> bool {
        let mut state = self.lock();
        let has_room = state.over_since.is_none() && state.viewers.len() < VIEWERS_MAX;
        if has_room {
            state.viewers.push(viewer.clone());
        }
        has_room
    }

    /// Shows all of them what the program wrote.
    pub fn show(&self, output: Output, bytes: &[u8]) {
        let viewers = self.lock().viewers.clone();
        if viewers.is_empty() {
            return;
        }
        for piece in bytes.chunks(PAYLOAD_BYTES_MAX) {
            let frame = encoded(match output {
                Output::Out => Message::Stdout(piece),
                Output::Errors => Message::Stderr(piece),
            });
            for viewer in &viewers {
                viewer.put(&frame, &|| self.has_time());
            }
        }
    }

    /// Whether who reads slowly is still waited for.
    fn has_time(&self) -> bool {
        let over_since = self.lock().over_since;
        over_since.is_none_or(|end| end.elapsed() < LAST_WORDS)
    }

    /// The machine has ended: soon nobody is waited for any more.
    pub fn let_go(&self) {
        self.lock().over_since.get_or_insert_with(Instant::now);
    }

    /// Tells them how the program ended; those who read hear of it.
    pub fn end(&self, status: u8) {
        self.let_go();
        let viewers = self.lock().viewers.clone();
        let deadline = Instant::now() + LAST_WORDS;
        for viewer in &viewers {
            viewer.put_last(&encoded(Message::Exit(status)));
        }
        viewers
            .iter()
            .for_each(|viewer| viewer.wait_until(deadline));
    }
}

/// Does what a client says, until it goes.
fn read(client: &UnixStream, typing: &Typing) {
    let mut client = client;
    let mut decoder = Decoder::default();
    while let Ok(Some(frame)) = next_frame(&mut client, &mut decoder) {
        match (frame.message, &typing.input) {
            (Message::Stdin(bytes), Some(input)) => {
                let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
                // A program that has closed its input needs none.
                let _ = input.write_all(bytes);
            }
            (Message::Window(window), _) => {
                let mut resize = typing.resize.lock().unwrap_or_else(PoisonError::into_inner);
                resize(Window {
                    rows: window.rows,
                    columns: window.columns,
                });
            }
            _ => {}
        }
    }
}

pub(super) fn encoded(message: Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame {
        channel: CHANNEL,
        message,
    }
    .encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn session(name: &str) -> (Viewers, UnixStream, std::path::PathBuf) {
        let name = format!("sietch-attach-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("room");
        let (program, input) = UnixStream::pair().expect("sockets");
        let viewers = Viewers::default();
        let served = viewers.serve(&folder, false, Some(input), |_| ());
        served.expect("listens");
        (viewers, program, folder)
    }

    /// Attaches, and waits until the session knows.
    fn attach(viewers: &Viewers, folder: &Path) -> UnixStream {
        let before = viewers.lock().viewers.len();
        let mut client = UnixStream::connect(socket(folder)).expect("listens");
        let mut greeting = [9; 2];
        client.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(greeting, [0, 1]);
        while viewers.lock().viewers.len() <= before {
            thread::yield_now();
        }
        client
    }

    #[test]
    fn all_see_what_is_written_and_hear_of_the_end() {
        let (viewers, mut program, folder) = session("all");
        let clients = [(); 3].map(|()| attach(&viewers, &folder));
        let mut first = &clients[0];
        first
            .write_all(&encoded(Message::Stdin(b"typed")))
            .expect("read");
        let mut typed = [0; 5];
        program.read_exact(&mut typed).expect("typed");
        assert_eq!(&typed, b"typed");
        viewers.show(Output::Out, b"out");
        viewers.show(Output::Errors, b"err");
        viewers.end(3);
        for mut client in &clients {
            let mut seen = Vec::new();
            client.read_to_end(&mut seen).expect("its end");
            let expected = [
                Message::Stdout(b"out"),
                Message::Stderr(b"err"),
                Message::Exit(3),
            ];
            assert_eq!(seen, expected.map(encoded).concat());
        }
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn who_does_not_read_lets_the_program_wait_and_its_end_not() {
        let (viewers, _program, folder) = session("slow");
        let client = attach(&viewers, &folder);
        let writer = viewers.clone();
        let writing = thread::spawn(move || {
            let piece = vec![7; PAYLOAD_BYTES_MAX];
            // More than socket and queue hold.
            for _ in 0..2000 {
                writer.show(Output::Out, &piece);
            }
        });
        let viewer = viewers.lock().viewers[0].clone();
        while viewer.lock().bytes.len() <= QUEUE_BYTES_MAX {
            thread::yield_now();
        }
        assert!(!writing.is_finished());
        assert!(viewer.lock().bytes.len() < QUEUE_BYTES_MAX + 2 * PAYLOAD_BYTES_MAX);
        viewers.end(0);
        writing.join().expect("lets go");
        drop(client);
        let _ = fs::remove_dir_all(folder);
    }
}
