//! The commands, one file each. A command returns the exit status.

mod background;
pub mod build;
pub mod compose;
pub mod cp;
pub mod doctor;
mod dry_run;
pub mod events;
pub mod exec;
pub mod images;
pub mod inspect;
pub mod kill;
mod life;
pub mod logs;
pub mod manual;
pub mod network;
pub mod port;
pub mod profile;
pub mod ps;
pub mod rename;
pub mod restart;
pub mod rm;
pub mod run;
pub mod snapshot;
pub mod stats;
pub mod stop;
pub mod top;
pub mod update;
pub mod version;
pub mod volume;
pub mod wait;
pub mod wakeups;

pub(crate) use dry_run::{shell_line, shell_quoted};
