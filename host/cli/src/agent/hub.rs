//! The session's end: many clients, one port.
//!
//! A thread takes clients, one reads the port, and each client has two: one reads it, one brings it what comes.
//! A client's channel is its own until the machine has said the last word on it, even if the client has gone.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use agent::{CHANNELS_MAX, Decoder, Frame, Message, Refusal};

use super::outbox::Outbox;
use super::{next_frame, socket};

#[derive(Debug)]
struct Hub {
    port: Mutex<UnixStream>,
    /// By number, less one.
    channels: Mutex<[Option<Arc<Outbox>>; CHANNELS_MAX as usize]>,
}

/// Listens for clients of the machine at `port`, whose folder is `folder`, as long as this process lives.
pub fn serve(port: &UnixStream, folder: &Path) -> io::Result<()> {
    let path = socket(folder);
    // A machine of the same name that was killed has left one behind.
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let hub = Arc::new(Hub {
        port: Mutex::new(port.try_clone()?),
        channels: Mutex::new([const { None }; CHANNELS_MAX as usize]),
    });
    let (reader, from_port) = (hub.clone(), port.try_clone()?);
    thread::spawn(move || reader.read_port(from_port));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let hub = hub.clone();
            thread::spawn(move || hub.serve_client(&client));
        }
    });
    Ok(())
}

impl Hub {
    fn channels(&self) -> MutexGuard<'_, [Option<Arc<Outbox>>; CHANNELS_MAX as usize]> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings what comes by the port to whom it is for. At its end the machine has ended.
    fn read_port(&self, mut port: UnixStream) {
        let mut decoder = Decoder::default();
        let mut bytes = Vec::new();
        while let Ok(Some(frame)) = next_frame(&mut port, &mut decoder) {
            frame.encode(&mut bytes);
            self.pass_on(frame, &bytes);
        }
        let channels = self.channels();
        channels.iter().flatten().for_each(|outbox| outbox.close());
    }

    fn pass_on(&self, frame: Frame<'_>, bytes: &[u8]) {
        let mut channels = self.channels();
        let place = usize::from(frame.channel).checked_sub(1);
        let Some(place) = place.and_then(|at| channels.get_mut(at)) else {
            return;
        };
        let Some(outbox) = place.clone() else { return };
        outbox.put(bytes);
        if frame.message.is_last() {
            *place = None;
            outbox.close();
        }
    }

    /// Says something to the machine for the client of `outbox`, unless the channel is its no longer: what comes too
    /// late must not reach the next one, whose request cannot overtake this.
    fn send(&self, outbox: &Arc<Outbox>, channel: u16, message: Message<'_>) -> io::Result<()> {
        let bytes = encoded(channel, message);
        let mut port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        match channel == 0 || self.is_owner(outbox, channel) {
            true => port.write_all(&bytes),
            false => Ok(()),
        }
    }

    /// Whether the machine has not said the last word on the channel of this client.
    fn is_owner(&self, outbox: &Arc<Outbox>, channel: u16) -> bool {
        let channels = self.channels();
        let owner = &channels[usize::from(channel) - 1];
        owner
            .as_ref()
            .is_some_and(|owner| Arc::ptr_eq(owner, outbox))
    }

    /// A channel that nobody has.
    fn take_channel(&self, outbox: &Arc<Outbox>) -> Option<u16> {
        let mut channels = self.channels();
        let at = channels.iter().position(Option::is_none)?;
        channels[at] = Some(outbox.clone());
        u16::try_from(at + 1).ok()
    }

    fn free_channel(&self, channel: u16) {
        self.channels()[usize::from(channel) - 1] = None;
    }

    fn serve_client(&self, client: &UnixStream) {
        let outbox = Arc::new(Outbox::default());
        thread::scope(|scope| {
            let delivery = outbox.clone();
            scope.spawn(move || {
                delivery.deliver(client);
                // Who reads the client hears of it.
                let _ = client.shutdown(Shutdown::Both);
            });
            self.read_client(client, &outbox);
            outbox.close();
        });
    }

    /// Passes on what a client says: a request, then what concerns it.
    fn read_client(&self, client: &UnixStream, outbox: &Arc<Outbox>) {
        let mut client = client;
        let mut decoder = Decoder::default();
        let mut channel = None;
        let mut has_begun = false;
        while let Ok(Some(frame)) = next_frame(&mut client, &mut decoder) {
            let sent = match (frame.channel, frame.message) {
                // For process 1.
                (0, Message::Signal(_)) => self.send(outbox, 0, frame.message),
                (_, Message::ExecPart(_) | Message::Exec(_)) if !has_begun => {
                    channel = channel.or_else(|| self.take_channel(outbox));
                    let Some(channel) = channel else {
                        outbox.put(&encoded(0, Message::Refused(Refusal::TooMany)));
                        break;
                    };
                    has_begun = matches!(frame.message, Message::Exec(_));
                    self.send(outbox, channel, frame.message)
                }
                (_, message) if has_begun && is_of_client(&message) => match channel {
                    Some(channel) => self.send(outbox, channel, message),
                    None => break,
                },
                _ => break,
            };
            if sent.is_err() {
                break;
            }
        }
        let Some(channel) = channel else { return };
        // A machine that has ended needs no word.
        let _ = self.send(outbox, channel, Message::Close);
        if !has_begun {
            // There will be no last word.
            self.free_channel(channel);
        }
    }
}

fn encoded(channel: u16, message: Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Frame { channel, message }.encode(&mut bytes);
    bytes
}

/// What a client may say of a command that it began.
fn is_of_client(message: &Message<'_>) -> bool {
    matches!(
        message,
        Message::Stdin(_)
            | Message::StdinEnd
            | Message::Window(_)
            | Message::Signal(_)
            | Message::Credit(_)
    )
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    /// A hub whose machine is the other end of what is returned, and its folder.
    fn hub(name: &str) -> (UnixStream, std::path::PathBuf) {
        let folder = env::temp_dir().join(format!("sietch-hub-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (machine, port) = UnixStream::pair().expect("sockets");
        serve(&port, &folder).expect("listens");
        (machine, folder)
    }

    fn say(mut stream: &UnixStream, channel: u16, message: Message<'_>) {
        stream.write_all(&encoded(channel, message)).expect("read");
    }

    #[track_caller]
    fn hears(mut stream: &UnixStream, channel: u16, message: Message<'_>) {
        let mut decoder = Decoder::default();
        let frame = next_frame(&mut stream, &mut decoder).expect("readable");
        assert_eq!(frame, Some(Frame { channel, message }));
    }

    #[test]
    fn each_client_has_a_channel_of_its_own_until_the_last_word() {
        let (machine, folder) = hub("own");
        let connect = || UnixStream::connect(socket(&folder)).expect("listens");
        let one = connect();
        say(&one, 1, Message::Exec(b"a"));
        hears(&machine, 1, Message::Exec(b"a"));
        let two = connect();
        say(&two, 1, Message::Exec(b"b"));
        hears(&machine, 2, Message::Exec(b"b"));
        say(&machine, 2, Message::Stdout(b"of b"));
        hears(&two, 2, Message::Stdout(b"of b"));
        // Gone before the command: its number is free only after the last word.
        drop(one);
        hears(&machine, 1, Message::Close);
        let three = connect();
        say(&three, 1, Message::Exec(b"c"));
        hears(&machine, 3, Message::Exec(b"c"));
        say(&machine, 1, Message::Exit(0));
        say(&machine, 3, Message::Refused(Refusal::NoProgram));
        hears(&three, 3, Message::Refused(Refusal::NoProgram));
        let four = connect();
        say(&four, 1, Message::Exec(b"d"));
        hears(&machine, 1, Message::Exec(b"d"));
        drop(machine);
        assert_eq!(
            next_frame(&mut &four, &mut Decoder::default()).expect("ends"),
            None
        );
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn one_more_client_than_channels_is_turned_away() {
        let (machine, folder) = hub("many");
        let clients: Vec<_> = (1..=CHANNELS_MAX)
            .map(|number| {
                let client = UnixStream::connect(socket(&folder)).expect("listens");
                say(&client, 1, Message::Exec(b"x"));
                hears(&machine, number, Message::Exec(b"x"));
                client
            })
            .collect();
        let late = UnixStream::connect(socket(&folder)).expect("listens");
        say(&late, 1, Message::Exec(b"x"));
        hears(&late, 0, Message::Refused(Refusal::TooMany));
        drop(clients);
        let _ = fs::remove_dir_all(folder);
    }

    #[test]
    fn a_client_that_speaks_nonsense_is_cut_off_and_nobody_else() {
        let (machine, folder) = hub("nonsense");
        let mut bad = UnixStream::connect(socket(&folder)).expect("listens");
        bad.write_all(&[255; 64]).expect("read");
        assert_eq!(
            next_frame(&mut &bad, &mut Decoder::default())
                .ok()
                .flatten(),
            None
        );
        let good = UnixStream::connect(socket(&folder)).expect("listens");
        say(&good, 1, Message::Exec(b"x"));
        hears(&machine, 1, Message::Exec(b"x"));
        let _ = fs::remove_dir_all(folder);
    }
}
