//! The commands, one file each. A command returns the exit status.

mod background;
pub mod build;
pub mod doctor;
pub mod exec;
pub mod images;
pub mod inspect;
pub mod kill;
pub mod logs;
pub mod port;
pub mod profile;
pub mod ps;
pub mod restart;
pub mod rm;
pub mod run;
pub mod stop;
pub mod volume;
pub mod wait;
pub mod wakeups;
