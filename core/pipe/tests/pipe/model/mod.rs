//! `loom` runs readers, writers and splicers in all orders that matter.
//!
//! A thread that has nothing to do enters a queue, looks at the counts, and sleeps until it is
//! told. In the end of each scene somebody looks who still sleeps, and whether that is right.

use crate::world::{Buffer, Bytes};
use loom::sync::Mutex;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::SeqCst;
use loom::thread;
use models::{Heap, Watched, explore, start};
use pipe::{Access, Borders, News, Read, Written};
use std::sync::Arc;

type Pipe = pipe::Pipe<Watched, Heap>;

/// A pipe, and who sleeps at it.
struct Scene {
    pipe: Pipe,
    /// Threads in the queue that were not told.
    waiting: Mutex<usize>,
    read: AtomicUsize,
}

impl Scene {
    fn new(access: Access) -> Arc<Self> {
        let pipe = Pipe::new(1);
        let _ = pipe.enter(access);
        Arc::new(Self {
            pipe,
            waiting: Mutex::new(0),
            read: AtomicUsize::new(0),
        })
    }

    /// As the kernel does with what others are to hear.
    fn tell(&self, news: News) {
        if !matches!(news, News::None | News::MoreBytes) {
            self.tell_all();
        }
    }

    fn tell_all(&self) {
        *self.waiting.lock().expect("no panic") = 0;
    }

    /// Enters the queue; leaves it again if there is something to do.
    fn queue(&self, is_worth_it: impl Fn(&Pipe) -> bool) -> bool {
        *self.waiting.lock().expect("no panic") += 1;
        if is_worth_it(&self.pipe) {
            let mut waiting = self.waiting.lock().expect("no panic");
            *waiting = waiting.saturating_sub(1);
            return false;
        }
        true
    }

    /// Whether somebody sleeps whom nobody has told.
    fn has_sleeper(&self) -> bool {
        *self.waiting.lock().expect("no panic") != 0
    }

    /// Reads once; whether it has to sleep.
    fn read_or_queue(&self) -> bool {
        loop {
            match self.pipe.read(&mut Buffer::new(9)).expect("there is room") {
                Read::Bytes(count, news) => {
                    self.read.fetch_add(count, SeqCst);
                    self.tell(news);
                    return false;
                }
                Read::End => return false,
                Read::Nothing if self.queue(|pipe| pipe.has_come(0)) => return true,
                Read::Nothing => thread::yield_now(),
            }
        }
    }

    fn write(&self, bytes: &[u8]) -> bool {
        let least = Borders::None.least(bytes.len());
        match self.pipe.write(&mut Bytes(bytes), least, Borders::None) {
            Ok(Written::Bytes(count, news)) => {
                assert_eq!(count, bytes.len(), "it is atomic");
                self.tell(news);
                true
            }
            Ok(_) => false,
            Err(why) => panic!("{why:?}"),
        }
    }
}

#[test]
fn a_reader_that_sleeps_is_told_of_the_first_bytes() {
    explore(|| {
        let scene = Scene::new(Access::BOTH);
        let reader = start(&scene, |scene| scene.read_or_queue());
        assert!(scene.write(b"ab"));
        let sleeps = reader.join().expect("it ends");
        assert!(!scene.has_sleeper(), "a wake-up is lost");
        assert!(sleeps || scene.read.load(SeqCst) == 2);
    });
}

#[test]
fn a_reader_gets_what_the_last_writer_wrote_before_it_left() {
    explore(|| {
        let scene = Scene::new(Access::READ);
        let _ = scene.pipe.enter(Access::WRITE);
        let writer = start(&scene, |scene| {
            assert!(scene.write(b"ab"));
            scene.pipe.leave(Access::WRITE);
            scene.tell_all();
        });
        let mut buffer = Buffer::new(9);
        let got = scene.pipe.read(&mut buffer).expect("there is room");
        assert_ne!(got, Read::End, "the bytes are lost");
        writer.join().expect("it ends");
    });
}

#[test]
fn a_reader_that_sleeps_is_told_that_the_last_writer_left() {
    explore(|| {
        let scene = Scene::new(Access::READ);
        let _ = scene.pipe.enter(Access::WRITE);
        let reader = start(&scene, |scene| scene.read_or_queue());
        scene.pipe.leave(Access::WRITE);
        scene.tell_all();
        reader.join().expect("it ends");
        assert!(!scene.has_sleeper(), "a wake-up is lost");
    });
}

#[test]
fn bytes_that_splice_holds_are_taken_once() {
    explore(|| {
        let scene = Scene::new(Access::BOTH);
        assert!(scene.write(b"ab"));
        let reader = start(&scene, |scene| scene.read_or_queue());
        let mut moved = 0;
        if scene.pipe.hold() {
            let mut bytes = Buffer::new(9);
            moved = scene.pipe.peek(0, &mut bytes).expect("there is room");
            scene.tell(scene.pipe.skip(moved));
            scene.tell(scene.pipe.release());
        }
        reader.join().expect("it ends");
        assert_eq!(moved + scene.read.load(SeqCst), 2, "each byte goes one way");
    });
}

#[test]
fn a_reader_that_met_a_hold_is_told_when_it_ends() {
    explore(|| {
        let scene = Scene::new(Access::BOTH);
        assert!(scene.write(b"ab"));
        let reader = start(&scene, |scene| scene.read_or_queue());
        if scene.pipe.hold() {
            // The target takes nothing.
            scene.tell(scene.pipe.release());
        }
        reader.join().expect("it ends");
        assert!(!scene.has_sleeper(), "a wake-up is lost");
    });
}

#[test]
fn a_writer_that_sleeps_is_told_of_room() {
    explore(|| {
        let scene = Scene::new(Access::BOTH);
        assert!(scene.write(&[1; 4096]));
        let writer = start(&scene, |scene| {
            while !scene.write(&[2; 4096]) {
                if scene.queue(|pipe| pipe.has_room(4096)) {
                    return;
                }
                thread::yield_now();
            }
        });
        let got = scene.pipe.read(&mut Buffer::new(4096));
        let Ok(Read::Bytes(4096, news)) = got else {
            panic!("it is full: {got:?}")
        };
        scene.tell(news);
        writer.join().expect("it ends");
        assert!(!scene.has_sleeper(), "a wake-up is lost");
    });
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn loom_notices_a_reader_that_looks_before_it_queues() {
    explore(|| {
        let scene = Scene::new(Access::BOTH);
        let reader = start(&scene, |scene| {
            if !scene.pipe.has_come(0) {
                scene.queue(|_| false);
            }
        });
        assert!(scene.write(b"ab"));
        reader.join().expect("it ends");
        assert!(!scene.has_sleeper(), "a wake-up is lost");
    });
}
