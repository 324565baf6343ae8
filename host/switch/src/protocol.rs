//! What is said at the switch's socket: a line of JSON each way. A connection that has joined stays, and its end is the
//! member's.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::counts::Drops;
use crate::network::Lease;

/// The longest line.
pub const LINE_BYTES_MAX: usize = 1 << 14;
/// Names that one machine may have besides its own.
pub const ALIASES_MAX: usize = 32;

/// What the switch is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// To be a member.
    Join(Join),
    /// Who is there.
    Describe,
    /// A member is on other networks than before.
    Others {
        /// Its name.
        name: String,
        /// As [`Join::others`].
        others: Vec<PathBuf>,
    },
}

/// A machine that is to be a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Its name.
    pub name: String,
    /// Further names, which others may have too.
    pub aliases: Vec<String>,
    /// The address that it wants.
    pub wish: Option<Ipv4Addr>,
    /// Where its card is, or will be, listening.
    pub card: PathBuf,
    /// Where its way out is, or will be, if it has one by this network.
    pub way_out: Option<PathBuf>,
    /// The switches of other networks that it is on, and asks for names by this one.
    #[serde(default)]
    pub others: Vec<PathBuf>,
}

/// What the switch answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is a member, with this.
    Joined(Lease),
    /// It is not; a sentence.
    Refused(String),
    /// It is not, as long as another one is; a sentence.
    Taken(String),
    /// Who is there.
    Described(Description),
    /// It is done.
    Done,
}

/// Who is there, and what was dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The switch's process.
    pub pid: u32,
    /// What its network is called.
    #[serde(default)]
    pub network: String,
    /// The machines.
    pub members: Vec<Member>,
    /// Frames that went nowhere.
    pub drops: Drops,
}

/// One machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its names, its own first.
    pub names: Vec<String>,
    /// What it has.
    pub lease: Lease,
}
