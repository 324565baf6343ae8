//! `sietch pull` from a registry that breaks off, stumbles, or sends something else.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::image::Image;
use crate::registry::{ANSWERS, Answer, Registry};
use crate::scene::Scene;
use crate::{drafts_below, outcome, succeed};

/// Bytes in the image's layer.
const NOISE: u32 = 3000;

/// Regions of an answer: of its first line, its headers, the empty line, and its body's begin, middle and end.
fn regions(answer: &Answer) -> Vec<usize> {
    let (head, body) = (answer.head.len(), answer.body.len());
    let mut all = vec![0, 1, 9, 17, head / 2, head - 2, head - 1];
    if body > 0 {
        all.extend([head, head + 1, head + body / 2, head + body - 1]);
    }
    all
}

/// The answers as they are if nothing is wrong.
fn answers() -> Vec<Answer> {
    let (registry, scene) = (
        Registry::new(Image::new(NOISE)),
        Scene::new("faults-answers"),
    );
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let all = std::sync::Arc::clone(&seen);
    registry.spoil(move |answer| {
        all.lock().unwrap().push(answer.clone());
        answer.bytes()
    });
    succeed(&mut scene.sietch(&["pull", &registry.reference()]));
    let mut all = seen.lock().unwrap().clone();
    all.retain(|answer| answer.number == 0);
    assert_eq!(all.iter().map(|own| own.kind).collect::<Vec<_>>(), ANSWERS);
    all
}

/// The first answer of that kind ends after so many bytes, and the image comes all the same.
fn comes_though_cut(kind: &'static str, at: usize, knows_ranges: bool) {
    let registry = Registry::with(Image::new(NOISE), knows_ranges, None);
    registry.spoil(
        move |answer| match answer.kind == kind && answer.number == 0 {
            true => answer.bytes()[..at].to_vec(),
            false => answer.bytes(),
        },
    );
    let scene = Scene::new(&format!("faults-cut-{kind}-{at}-{knows_ranges}"));
    let come = outcome(&mut scene.sietch(&["pull", &registry.reference()]));
    come.unwrap_or_else(|sentence| panic!("{kind} cut at {at}: {sentence}"));
    assert!(drafts_below(&scene.0).is_empty());
}

#[test]
fn an_image_comes_wherever_a_connection_is_cut_once() {
    for answer in answers() {
        for at in regions(&answer) {
            comes_though_cut(answer.kind, at, at % 2 == 0);
        }
    }
}

#[test]
#[ignore = "each byte of each answer takes minutes"]
fn an_image_comes_at_whatever_byte_a_connection_is_cut_once() {
    for answer in answers() {
        // Of a layer, which has no structure on its way, each 16th is enough.
        let (head, step) = (
            answer.head.len(),
            if answer.kind == "layer" { 16 } else { 1 },
        );
        for at in (0..head).chain((head..answer.bytes().len()).step_by(step)) {
            comes_though_cut(answer.kind, at, at % 2 == 0);
        }
    }
}

/// The image does not come, with a sentence that says that; and comes once the registry is well.
fn fails_with(words: &str, what: &str, spoil: impl Fn(Answer) -> Vec<u8> + Send + Sync + 'static) {
    let registry = Registry::new(Image::new(NOISE));
    registry.spoil(spoil);
    let scene = Scene::new(&format!("faults-fails-{what}"));
    let pull = || outcome(&mut scene.sietch(&["pull", &registry.reference()]));
    let sentence = pull().expect_err(what);
    assert!(sentence.contains(words), "{what}: {sentence}");
    let list = succeed(&mut scene.sietch(&["images"]));
    assert_eq!(list.lines().count(), 1, "{what}: {list}");
    registry.spoil(|answer| answer.bytes());
    pull().unwrap_or_else(|sentence| panic!("{what}, and well again: {sentence}"));
    assert!(drafts_below(&scene.0).is_empty());
}

#[test]
fn a_registry_that_breaks_off_each_time_is_a_sentence_and_the_next_pull_works() {
    thread::scope(|scope| {
        for kind in ANSWERS {
            scope.spawn(move || {
                fails_with("try again", &format!("{kind}-cut"), move |answer| {
                    let cut = answer.head.len() + answer.body.len() / 2 - 1;
                    match answer.kind == kind {
                        true => answer.bytes()[..cut].to_vec(),
                        false => answer.bytes(),
                    }
                });
            });
            scope.spawn(move || {
                let what = format!("{kind}-500");
                fails_with(
                    "says 500 Internal Server Error",
                    &what,
                    move |answer| match answer.kind == kind {
                        true => answer.fail("500 Internal Server Error"),
                        false => answer.bytes(),
                    },
                );
            });
        }
    });
}

#[test]
fn a_registry_that_stumbles_a_few_times_is_asked_again() {
    for (kind, status) in [
        ("manifest", "503 Busy"),
        ("layer", "500 Oops"),
        ("token", "502 Bad"),
    ] {
        let registry = Registry::new(Image::new(NOISE));
        registry.spoil(
            move |answer| match answer.kind == kind && answer.number < 3 {
                true => answer.fail(status),
                false => answer.bytes(),
            },
        );
        let scene = Scene::new(&format!("faults-stumbles-{kind}"));
        succeed(&mut scene.sietch(&["pull", &registry.reference()]));
    }
}

#[test]
fn what_came_whole_is_not_asked_for_again() {
    let registry = Registry::new(Image::new(NOISE));
    // A document is read first, and copied after the layers.
    registry.spoil(|answer| match answer.kind {
        "config" if answer.number > 0 => answer.fail("500 Oops"),
        _ => answer.bytes(),
    });
    let scene = Scene::new("faults-kept");
    let pull = || outcome(&mut scene.sietch(&["pull", &registry.reference()]));
    assert!(pull().unwrap_err().contains("says 500"));
    registry.spoil(|answer| match answer.kind {
        "layer" => answer.fail("404 Not Found"),
        _ => answer.bytes(),
    });
    pull().unwrap();
}

#[test]
fn lengths_that_are_wrong_do_no_harm() {
    let of_layer = |length: &'static str| {
        move |answer: Answer| match answer.kind {
            "layer" => answer.with_length(length),
            _ => answer.bytes(),
        }
    };
    for (what, length) in [("short", "700"), ("none", "0")] {
        fails_with("try again", what, of_layer(length));
    }
    for (what, length) in [
        ("words", "abc"),
        ("negative", "-5"),
        ("endless", "99999999999999999999"),
    ] {
        fails_with("The registry", what, of_layer(length));
    }
    let registry = Registry::new(Image::new(NOISE));
    // All that is wanted comes.
    registry.spoil(of_layer("9000"));
    let scene = Scene::new("faults-long");
    succeed(&mut scene.sietch(&["pull", &registry.reference()]));
}

#[test]
fn bytes_that_are_others_are_refused_and_those_that_are_no_http() {
    for kind in ["config", "layer"] {
        fails_with(
            "is damaged (it is sha256:",
            &format!("{kind}-flipped"),
            move |mut answer| {
                if answer.kind == kind {
                    answer.body[40] ^= 1;
                }
                answer.bytes()
            },
        );
    }
    fails_with("The registry", "no-http", |_| {
        b"SSH-2.0-OpenSSH_9\r\n".to_vec()
    });
    fails_with("no token", "no-token", |answer| match answer.kind {
        "token" => answer.with_length("3"),
        _ => answer.bytes(),
    });
}

#[test]
fn an_image_that_comes_byte_for_byte_comes() {
    let registry = Registry::with(Image::new(10), true, Some(Duration::from_micros(100)));
    let scene = Scene::new("faults-bytes");
    let reference = registry.reference();
    succeed(&mut scene.sietch(&["pull", &reference]));
    assert!(
        fs::read_dir(scene.0.join("sietch/images/blobs/sha256"))
            .unwrap()
            .count()
            == 3
    );
}
