//! The long forms: `powercut sequences`, `powercut walks SEEDS`, `powercut requests SEEDS`, `powercut day SEED`,
//! `powercut plants`.
//!
//! Each prints what it looked at; a wrong image ends it with status 1, the sequence and the cut.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use powercut::day::{self, Faults};
use powercut::files::scene::{Room, Scene};
use powercut::files::sequence::{Effort, Tally, all, try_cuts};
use powercut::files::walk::walk;
use powercut::{plants, requests};

/// Bugs that may stay unfound.
const UNFOUND_MAX: usize = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().map_err(|_| format!("{text} is no number"));
    let done = match words[..] {
        ["sequences"] => sequences(),
        ["walks", seeds] => number(seeds).and_then(walks),
        ["requests", seeds] => {
            number(seeds).and_then(|seeds| (0..seeds).try_for_each(requests::history))
        }
        ["day", seed] => number(seed).and_then(a_day),
        ["plants"] => hunts(),
        _ => Err("powercut sequences | walks SEEDS | requests SEEDS | day SEED | plants".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn scenes() -> Result<[Scene; 2], String> {
    Ok([Scene::new(Room::Much)?, Scene::new(Room::Little)?])
}

fn print(what: &str, tally: &Tally) {
    println!(
        "{what}: {} sequences, {} images, {} of them seen by e2fsck",
        tally.sequences, tally.images, tally.checked
    );
}

fn sequences() -> Result<(), String> {
    let effort = Effort {
        torn: 3,
        again: 2,
        rotten: 1,
        cuts: usize::MAX,
        fsck_every: 500,
    };
    for (scene, room) in scenes()?.iter().zip([Room::Much, Room::Little]) {
        let mut tally = Tally::default();
        for (operations, seed) in all(3, &scene.files).iter().zip(0..) {
            try_cuts(scene, operations, &effort, seed, &mut tally)?;
        }
        print(&format!("up to 3 operations, room: {room:?}"), &tally);
    }
    Ok(())
}

fn walks(seeds: u64) -> Result<(), String> {
    let mut tally = Tally::default();
    for scene in &scenes()? {
        (0..seeds).try_for_each(|seed| walk(scene, seed, &mut tally))?;
    }
    print("walks", &tally);
    Ok(())
}

fn a_day(seed: u64) -> Result<(), String> {
    let scene = Scene::new(Room::Much)?;
    let tally = day::live(&scene, seed, 24, Faults::SOME)?;
    println!("a day of seed {seed}: {tally:#?}");
    Ok(())
}

fn hunts() -> Result<(), String> {
    let scenes = scenes()?;
    let mut unfound = 0;
    println!("| planted | found by | images |\n|---|---|---|");
    for bug in plants::BUGS {
        let hunt = plants::hunt(bug, &scenes);
        let by = hunt.found.as_ref().map_or("nothing", |found| found.0);
        println!("| {bug} | {by} | {} |", hunt.images);
        unfound += usize::from(hunt.found.is_none());
        match hunt.found {
            Some((_, wrong)) => eprintln!("{bug}: {wrong}"),
            None => eprintln!("{bug}: its place was passed {} times", hunt.reached),
        }
    }
    println!("{unfound} of {} unfound", plants::BUGS.len());
    match unfound <= UNFOUND_MAX {
        true => Ok(()),
        false => Err("too many bugs are not found".into()),
    }
}
