//! Files on a disk that loses power.

#[path = "../../../plog/src/tests/disk.rs"]
#[allow(dead_code, reason = "plog's own tests use all of it")]
mod disk;
mod histories;
mod plain;
mod planted;
mod world;

use plog::{Area, CommandId};
