//! A machine's side: it finds the switch, or starts it, and is a member as long as its process lives.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::network::Lease;
use crate::protocol::{Answer, Description, Join, Request};

/// How long a switch may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a machine that had the name or the address before may take to leave.
const LEAVING: Duration = Duration::from_secs(5);
/// Between two starts: a switch that finds another one ends.
const BETWEEN_STARTS: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// What makes a member's process start a switch.
pub type Start = dyn Fn() -> io::Result<()> + Send;

/// Why a machine is no member.
#[derive(Debug)]
pub enum JoinError {
    /// The switch says no; a sentence.
    Refused(String),
    /// There is no switch, and none starts.
    Io(io::Error),
}

/// A member's place in a network.
#[derive(Debug)]
pub struct Membership {
    /// What it has.
    pub lease: Lease,
    /// Its end is the member's.
    control: UnixStream,
}

impl Membership {
    /// Joins by the switch at `socket`, which `start` starts if there is none.
    pub fn join(socket: &Path, join: &Join, start: &Start) -> Result<Self, JoinError> {
        let begin = Instant::now();
        let mut last_start: Option<Instant> = None;
        loop {
            let (failure, patience) = match ask(socket, &Request::Join(join.clone())) {
                Ok((Answer::Joined(lease), control)) => return Ok(Self { lease, control }),
                Ok((Answer::Refused(sentence), _)) => return Err(JoinError::Refused(sentence)),
                Ok((Answer::Taken(sentence), _)) => (JoinError::Refused(sentence), LEAVING),
                Ok((Answer::Described(_) | Answer::Done, _)) => {
                    return Err(JoinError::Io(io::ErrorKind::InvalidData.into()));
                }
                Err(error) => {
                    if last_start.is_none_or(|last| last.elapsed() > BETWEEN_STARTS) {
                        last_start = Some(Instant::now());
                        start().map_err(JoinError::Io)?;
                    }
                    (JoinError::Io(error), PATIENCE)
                }
            };
            if begin.elapsed() > patience {
                return Err(failure);
            }
            thread::sleep(POLL);
        }
    }

    /// Stays a member in the background, by another switch if this one ends, with the same address.
    pub fn keep(self, socket: &Path, join: Join, start: Box<Start>) -> Kept {
        let state = State {
            join: Join {
                wish: Some(self.lease.address),
                ..join
            },
            control: Some(Arc::new(self.control)),
        };
        let kept = Kept {
            socket: socket.to_path_buf(),
            state: Arc::new(Mutex::new(state)),
        };
        let own = kept.clone();
        thread::spawn(move || own.stay(&*start));
        kept
    }
}

/// A membership that goes on in the background; its clones are one.
#[derive(Clone, Debug)]
pub struct Kept {
    socket: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    join: Join,
    /// Its end is the member's; none of one that has left.
    control: Option<Arc<UnixStream>>,
}

impl Kept {
    /// Leaves the network.
    pub fn leave(&self) {
        if let Some(control) = self.state().control.take() {
            // The thread that holds it too reads its end.
            let _ = control.shutdown(Shutdown::Both);
        }
    }

    /// Whose switches are asked for names, too, from now on.
    pub fn set_others(&self, others: Vec<PathBuf>) {
        self.state().join.others = others;
        self.tell_others();
    }

    /// Where the network's switch is.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_others(&self) {
        let Join { name, others, .. } = self.state().join.clone();
        // A switch that has just ended is told by who joins the next one.
        let _ = ask(&self.socket, &Request::Others { name, others });
    }

    fn stay(&self, start: &Start) {
        loop {
            let Some(control) = self.state().control.clone() else {
                return;
            };
            // It says nothing; what ends the read is the switch's end, or ours.
            let _ = (&*control).read(&mut [0; 1]);
            drop(control);
            while !self.rejoin(start) {
                thread::sleep(BETWEEN_STARTS);
            }
        }
    }

    /// Joins again; false if that is to be tried once more.
    fn rejoin(&self, start: &Start) -> bool {
        let join = {
            let state = self.state();
            if state.control.is_none() {
                return true;
            }
            state.join.clone()
        };
        let Ok(member) = Membership::join(&self.socket, &join, start) else {
            return false;
        };
        let mut state = self.state();
        // Who has left meanwhile leaves again, as the connection ends here.
        if state.control.is_some() {
            state.control = Some(Arc::new(member.control));
        }
        let is_behind = state.join.others != join.others;
        drop(state);
        if is_behind {
            self.tell_others();
        }
        true
    }
}

/// Who is there; `None` if no switch runs.
pub fn describe(socket: &Path) -> Option<Description> {
    match ask(socket, &Request::Describe) {
        Ok((Answer::Described(description), _)) => Some(description),
        _ => None,
    }
}

fn ask(socket: &Path, request: &Request) -> io::Result<(Answer, UnixStream)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    // It says one line, so nothing that is read too early is lost.
    BufReader::new(&mut stream).read_line(&mut answer)?;
    let answer = serde_json::from_str(&answer)?;
    stream.set_read_timeout(None)?;
    Ok((answer, stream))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::network;
    use crate::{Files, serve};

    fn names_there(socket: &Path) -> Vec<String> {
        let members = describe(socket).map(|there| there.members);
        let members = members.unwrap_or_default().into_iter();
        members.map(|member| member.names.join("+")).collect()
    }

    fn files(folder: &Path) -> Files {
        std::fs::create_dir_all(folder).expect("a folder");
        Files {
            socket: folder.join("switch.sock"),
            lock: folder.join("lock"),
            leases: folder.join("leases.json"),
        }
    }

    #[test]
    fn a_switch_whose_network_is_made_again_leaves_the_next_one_alone() {
        let folder = std::env::temp_dir().join(format!("sietch-again-{}", std::process::id()));
        let start = || {
            let files = files(&folder);
            let socket = files.socket.clone();
            let switch = thread::spawn(move || serve(network(), &files));
            while describe(&socket).is_none() {
                thread::sleep(POLL);
            }
            switch
        };
        let first = start();
        std::fs::remove_dir_all(&folder).expect("ours");
        let next = start();
        first.join().expect("no panic").expect("an end in peace");
        assert!(folder.join("switch.sock").exists() || next.is_finished());
        next.join().expect("no panic").expect("an end in peace");
        assert!(!folder.join("switch.sock").exists());
        std::fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn a_member_stays_by_another_switch_until_it_leaves() {
        let folder = std::env::temp_dir().join(format!("sietch-join-{}", std::process::id()));
        let files = files(&folder);
        let (own, socket) = (files.clone(), files.socket.clone());
        let start = move || {
            let files = own.clone();
            thread::spawn(move || serve(network(), &files));
            Ok(())
        };
        let join = |name: &str| Join {
            name: name.into(),
            aliases: vec!["alias".into()],
            wish: None,
            card: folder.join("card.sock"),
            way_out: None,
            others: Vec::new(),
        };
        let become_member = |name: &str| {
            let member = Membership::join(&socket, &join(name), &start).expect("there is room");
            (member.lease, member)
        };
        let (lease, one) = become_member("one");
        let one = one.keep(&socket, join("one"), Box::new(start.clone()));
        let (_, two) = become_member("two");
        let two = two.keep(&socket, join("two"), Box::new(start.clone()));
        assert_eq!(names_there(&socket), ["one+alias", "two+alias"]);
        // As if its switch had ended: it is there again, with what it had.
        let control = one.state().control.clone().expect("a member");
        control.shutdown(Shutdown::Both).expect("connected");
        for (name, is_member) in [("two", true), ("nobody", false)] {
            let (name, others) = (name.into(), vec!["/elsewhere".into()]);
            let answer = ask(&socket, &Request::Others { name, others });
            let is_done = matches!(answer, Ok((Answer::Done, _)));
            assert_eq!(is_done, is_member, "{answer:?}");
        }
        let wait_for = |names: &[&str]| {
            let deadline = Instant::now() + PATIENCE;
            let mut there = names_there(&socket);
            while there != names && Instant::now() < deadline {
                thread::sleep(POLL);
                there = names_there(&socket);
            }
            assert_eq!(there, names);
        };
        drop(control);
        wait_for(&["two+alias", "one+alias"]);
        two.leave();
        wait_for(&["one+alias"]);
        let (again, _member) = become_member("two");
        assert_ne!(again.address, lease.address);
        one.leave();
        wait_for(&["two+alias"]);
        std::fs::remove_dir_all(&folder).expect("ours");
    }
}
