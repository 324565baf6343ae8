//! `loom` runs notifiers, waiters and those who change watches in all orders that matter.
//!
//! In the end of each scene nobody may sleep beside a set with something to report, and each
//! report that is due once was given once.

use std::sync::Arc;

use crate::world::{File, World};
use epoll::{Events, Set, Trigger, Watch};
use models::{Watched, explore, start};

const LEVEL: Trigger = Trigger::empty();

/// A set, and a file that it watches.
struct Scene {
    set: World<Watched>,
    file: Arc<File<Watched>>,
}

fn watch(trigger: Trigger, data: u64) -> Watch {
    Watch {
        interest: Events::IN,
        trigger,
        data,
    }
}

impl Scene {
    fn new(trigger: Trigger) -> Arc<Self> {
        let scene = Self {
            set: Set::new(),
            file: File::new(),
        };
        scene.add(trigger);
        Arc::new(scene)
    }

    fn add(&self, trigger: Trigger) {
        let added = self.set.add(1, &self.file, watch(trigger, 1));
        assert_eq!(added, Ok(()));
    }

    fn change(&self) {
        self.file.set_ready(Events::IN);
        self.file.notify(Events::IN);
    }

    fn collect(&self) -> usize {
        let all = self.set.collect(9, |_| Ok::<(), ()>(()));
        all.expect("all are taken")
    }

    /// Waits: sleeps if nothing may be ready.
    fn wait(&self) {
        self.set.waiters.queue(|| self.set.may_be_ready());
    }

    fn assert_nobody_sleeps(&self) {
        let is_asleep = self.set.waiters.asleep() != 0;
        assert!(!is_asleep || !self.set.has_ready(), "a wake-up is lost");
    }
}

#[test]
fn who_waits_is_woken_by_a_change() {
    for trigger in [LEVEL, Trigger::EDGE, Trigger::ONESHOT] {
        explore(move || {
            let scene = Scene::new(trigger);
            let notifier = start(&scene, Scene::change);
            scene.wait();
            notifier.join().expect("it ends");
            scene.assert_nobody_sleeps();
            assert_eq!(scene.collect(), 1);
        });
    }
}

#[test]
fn a_change_while_reports_are_collected_is_reported_then_or_later() {
    for trigger in [LEVEL, Trigger::EDGE] {
        explore(move || {
            let scene = Scene::new(trigger);
            scene.file.notify(Events::IN);
            let notifier = start(&scene, Scene::change);
            let before = scene.collect();
            notifier.join().expect("it ends");
            assert!(before + scene.collect() >= 1, "a change is lost");
        });
    }
}

#[test]
fn two_that_find_an_entry_ready_put_it_on_the_list_once() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        let notifier = start(&scene, Scene::change);
        let modified = scene.set.modify(1, &scene.file, watch(LEVEL, 1));
        assert_eq!(modified, Ok(()));
        notifier.join().expect("it ends");
        assert_eq!(scene.collect(), 1, "it is on the list twice");
    });
}

#[test]
fn who_collects_and_who_notifies_put_an_entry_on_the_list_once() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        scene.change();
        let notifier = start(&scene, Scene::change);
        assert!(scene.collect() >= 1);
        notifier.join().expect("it ends");
        assert_eq!(scene.collect(), 1, "it is on the list twice");
    });
}

#[test]
fn a_one_shot_report_goes_to_one_of_two() {
    explore(|| {
        let scene = Scene::new(Trigger::ONESHOT);
        scene.change();
        let notifier = start(&scene, Scene::change);
        let other = start(&scene, Scene::collect);
        let own = scene.collect();
        notifier.join().expect("it ends");
        let all = own + other.join().expect("it ends") + scene.collect();
        assert_eq!(all, 1, "it is due once");
    });
}

#[test]
fn a_one_shot_watch_that_is_armed_anew_reports_again() {
    explore(|| {
        let scene = Scene::new(Trigger::ONESHOT);
        scene.change();
        let armer = start(&scene, |scene| {
            let armed = scene.set.modify(1, &scene.file, watch(Trigger::ONESHOT, 2));
            assert_eq!(armed, Ok(()));
        });
        let mut seen = Vec::new();
        let give = |seen: &mut Vec<u64>| {
            let all = scene.set.collect(9, |event| {
                seen.push(event.data);
                Ok::<(), ()>(())
            });
            assert!(all.is_ok());
        };
        give(&mut seen);
        armer.join().expect("it ends");
        give(&mut seen);
        assert!(seen == [1, 2] || seen == [2], "{seen:?}");
    });
}

#[test]
fn who_waits_is_woken_though_another_collects() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        scene.change();
        let other = start(&scene, Scene::collect);
        scene.wait();
        other.join().expect("it ends");
        scene.assert_nobody_sleeps();
    });
}

#[test]
fn who_waits_is_woken_though_another_polls_the_set() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        scene.change();
        let other = start(&scene, |scene| {
            scene.wait();
            true
        });
        assert!(scene.set.has_ready());
        other.join().expect("it ends");
        scene.assert_nobody_sleeps();
    });
}

#[test]
fn two_who_poll_a_set_both_find_it_ready() {
    explore(|| {
        let scene = Scene::new(Trigger::EDGE);
        scene.change();
        let other = start(&scene, |scene| scene.set.has_ready());
        assert!(scene.set.has_ready());
        assert!(other.join().expect("it ends"));
    });
}

#[test]
fn a_removed_watch_reports_nothing_afterwards() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        let notifier = start(&scene, Scene::change);
        assert_eq!(scene.set.remove(1, &scene.file), Ok(()));
        assert_eq!(scene.collect(), 0, "it was removed");
        notifier.join().expect("it ends");
        assert_eq!(scene.collect(), 0, "it was removed");
        scene.add(LEVEL);
        assert_eq!(scene.collect(), 1);
    });
}

#[test]
fn a_watch_that_is_added_while_its_file_changes_reports_it() {
    for trigger in [LEVEL, Trigger::EDGE, Trigger::ONESHOT] {
        explore(move || {
            let scene = Arc::new(Scene {
                set: Set::new(),
                file: File::new(),
            });
            let notifier = start(&scene, Scene::change);
            scene.add(trigger);
            notifier.join().expect("it ends");
            assert!(scene.collect() >= 1, "a change is lost");
        });
    }
}

#[test]
fn a_change_while_a_watch_for_it_begins_is_reported() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        let notifier = start(&scene, |scene| {
            scene.file.set_ready(Events::OUT);
            scene.file.notify(Events::OUT);
        });
        let both = Watch {
            interest: Events::IN | Events::OUT,
            ..watch(LEVEL, 2)
        };
        assert_eq!(scene.set.modify(1, &scene.file, both), Ok(()));
        notifier.join().expect("it ends");
        assert_eq!(scene.collect(), 1, "a change is lost");
    });
}

#[test]
#[should_panic(expected = "a change is lost")]
fn loom_notices_a_file_that_is_looked_at_before_it_is_observed() {
    explore(|| {
        let scene = Arc::new(Scene {
            set: Set::new(),
            file: File::new(),
        });
        let notifier = start(&scene, |scene| {
            // It tells before it changes.
            scene.file.notify(Events::IN);
            scene.file.set_ready(Events::IN);
        });
        scene.add(Trigger::EDGE);
        notifier.join().expect("it ends");
        assert!(scene.collect() >= 1, "a change is lost");
    });
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn loom_notices_a_waiter_that_looks_before_it_queues() {
    explore(|| {
        let scene = Scene::new(LEVEL);
        let notifier = start(&scene, Scene::change);
        if !scene.set.may_be_ready() {
            scene.set.waiters.queue(|| false);
        }
        notifier.join().expect("it ends");
        scene.assert_nobody_sleeps();
    });
}
