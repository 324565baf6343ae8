//! The commands, one file each. A command returns the exit status.

pub mod build;
pub mod doctor;
pub mod exec;
pub mod images;
pub mod kill;
pub mod logs;
pub mod profile;
pub mod ps;
pub mod run;
pub mod stop;
pub mod volume;
pub mod wakeups;
