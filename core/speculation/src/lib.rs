//! Which vulnerabilities of speculative execution a processor has, and what is done about each.
//!
//! A processor says in CPUID and in IA32_ARCH_CAPABILITIES which vulnerabilities it does not have
//! and which features against them it offers ([`Processor`]; Intel SDM volume 4, "Affected
//! Processors" of Intel's security guidance; AMD APM volume 3, 8000_0008 and 8000_0021). From
//! this and from the switch `mitigations=off` follows a [`Plan`], and from both what
//! /sys/devices/system/cpu/vulnerabilities tells ([`Vulnerability::write`]). A processor that says
//! nothing counts as vulnerable if its vendor made vulnerable ones: the files never tell of a wall
//! that is not there.
//!
//! Not here: the instructions (`arch::speculation`) and when they run.

#![no_std]
#![forbid(unsafe_code)]

mod plan;
mod processor;
mod vulnerability;

pub use plan::{Plan, SPEC_CTRL_BHI_DIS_S, SPEC_CTRL_IBRS, SPEC_CTRL_STIBP};
pub use processor::{Features, Processor, Unaffected, Vendor};
pub use vulnerability::Vulnerability;
