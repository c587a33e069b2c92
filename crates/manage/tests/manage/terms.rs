//! Subscriptions whose terms change: by their subscribers, and by who may read.

use std::sync::Arc;

use manage::access::{Action, Subject};
use manage::error::Tag;
use manage::operation::{Caller, Transport};
use manage::push::Settings;
use serde_json::{Value, json};

use super::scene::row;
use super::subscriber::{Scene, app_tag, kinds, of, on_change, periodic, told};

/// Replaces the policy, as a reload does.
fn replace(scene: &mut Scene, change: impl FnOnce(&mut manage::access::Policy)) {
    let old = scene.policy.clone();
    change(&mut scene.policy);
    scene.with(|subscriptions, world, now| {
        subscriptions.policy_changed(&old, world.policy, now);
    });
}

// QUE-sec.1
// QUE-sec.1
#[test]
fn who_may_not_receive_the_notifications_has_no_subscription() {
    let mut scene = Scene::new(Settings::default());
    let (alice, carol) = (
        scene.establish("alice", on_change(), json!({})).expect("established"),
        scene.establish("carol", on_change(), json!({})).expect("established"),
    );
    assert_eq!(kinds(&scene.all(carol)), ["push-update"]);
    replace(&mut scene, |policy| policy.lists[2].rules.insert(0, told(Action::Deny)));
    assert_eq!(scene.with(|subscriptions, _, _| subscriptions.denied()), 1);
    scene.publish(vec![Arc::new(row("e2", "q3", 2))]);
    let last = scene.all(carol);
    assert_eq!(kinds(&last), ["subscription-terminated"]);
    assert_eq!(
        last[0]["ietf-subscribed-notifications:subscription-terminated"]["reason"],
        "ietf-yang-push:unchanging-selection"
    );
    assert_eq!(kinds(&scene.all(alice)), ["push-update", "push-change-update"]);

    let refused = scene.establish("carol", periodic(100), json!({})).expect_err("denied");
    assert_eq!(refused.tag, Tag::AccessDenied);
    assert!(refused.to_string().contains("carol may not receive the notification push-update"));
    // Data alone are not enough: what no rule permits is not sent.
    scene.policy.lists[2].rules.retain(|rule| !matches!(rule.subject, Subject::Notification(_)));
    scene.establish("carol", on_change(), json!({})).expect_err("denied");
}

// QUE-sec.1
#[test]
fn a_subscriber_whose_rules_are_others_begins_anew() {
    let mut scene = Scene::new(Settings::default());
    let ids = ["alice", "carol"]
        .map(|user| scene.establish(user, on_change(), json!({})).expect("established"));
    let regular = scene.establish("carol", periodic(100), json!({})).expect("established");
    replace(&mut scene, |policy| policy.lists.reverse());
    scene.publish(vec![Arc::new(row("e2", "q3", 2))]);
    assert_eq!(kinds(&scene.all(ids[1])), ["push-update", "push-change-update"]);
    replace(&mut scene, |policy| {
        let one = policy.lists.iter_mut().find(|list| &*list.name == "one").expect("there");
        // Nothing of any interface any more.
        one.rules.retain(|rule| {
            !matches!(&rule.subject, Subject::Data(_)) || rule.action == Action::Deny
        });
    });
    // Silence would say that nothing changes.
    assert_eq!(kinds(&scene.all(ids[1])), ["subscription-terminated"]);
    assert_eq!(scene.with(|subscriptions, _, _| subscriptions.denied()), 0);
    scene.publish(vec![Arc::new(row("e2", "q3", 3))]);
    assert_eq!(
        kinds(&scene.all(ids[0])),
        ["push-update", "push-change-update", "push-change-update"]
    );
    // What is sent whole says what is there by itself.
    scene.later(1000);
    let update = scene.all(regular).pop().expect("an update");
    assert!(!update.to_string().contains("e2"), "{update}");
}

#[test]
fn the_stream_says_where_new_terms_begin() {
    let mut scene = Scene::new(Settings::default());
    let filter = json!({"ietf-interfaces:interfaces": {"interface": [{"name": "e1"}, {"name": "e2",
        "ietf-pfc-queue-telemetry:pfc-queue-telemetry": {}}]}});
    let id = scene
        .establish("alice", on_change(), json!({"ietf-yang-push:datastore-subtree-filter": filter}))
        .expect("established");
    scene.all(id);
    let shown = |scene: &mut Scene| -> Value {
        let definition = super::scene::schema()
            .top("ietf-subscribed-notifications", "subscriptions")
            .expect("there");
        let node = scene.with(|subscriptions, _, _| subscriptions.top(definition, None));
        let text = manage::json::object(&[node.expect("there")]);
        serde_json::from_str(&text).expect("JSON")
    };
    let now = shown(&mut scene);
    let entry = &now["ietf-subscribed-notifications:subscriptions"]["subscription"][0];
    assert_eq!(entry["ietf-yang-push:datastore-subtree-filter"], filter);

    let narrow = json!({"ietf-interfaces:interfaces": {"interface": [{"name": "e2"}]}});
    let wanted = json!({"id": id, "ietf-yang-push:datastore": "ietf-datastores:operational",
        "ietf-yang-push:datastore-subtree-filter": narrow,
        "ietf-yang-push:on-change": {"dampening-period": 50}});
    scene.publish(vec![Arc::new(row("e1", "q3", 2))]);
    scene.call(&of("alice"), "modify-subscription", &wanted).expect("modified");
    let messages = scene.all(id);
    assert_eq!(kinds(&messages), ["push-change-update", "subscription-modified", "push-update"]);
    let terms = &messages[1]["ietf-subscribed-notifications:subscription-modified"];
    assert_eq!(terms["id"], id);
    assert_eq!(terms["ietf-yang-push:datastore-subtree-filter"], narrow);
    assert_eq!(terms["ietf-yang-push:on-change"]["dampening-period"], 50);
    assert_eq!(
        terms["ietf-restconf-subscribed-notifications:uri"],
        format!("https://h:8443/restconf/subscriptions/{id}")
    );
    assert!(!messages[2].to_string().contains("\"e1\""), "{}", messages[2]);

    // Over NETCONF the answer is in the same stream.
    let caller = Caller { user: "alice".into(), transport: Transport::Netconf(3) };
    let id = scene.establish_by(&caller, on_change(), json!({})).expect("established");
    while scene.with(|subscriptions, world, now| subscriptions.take(id, world, now)).is_some() {}
    let wanted = json!({"id": id, "ietf-yang-push:datastore": "ietf-datastores:operational",
        "ietf-yang-push:on-change": {}});
    scene.call(&caller, "modify-subscription", &wanted).expect("modified");
    let first = scene.with(|subscriptions, world, now| subscriptions.take(id, world, now));
    assert!(first.expect("everything").content().starts_with("<push-update"));
}

#[test]
fn terms_that_change_again_and_again_do_not_pile_up() {
    let mut scene = Scene::new(Settings { waiting_octets_max: 4096, ..Settings::default() });
    let ids = [on_change(), periodic(100)]
        .map(|trigger| scene.establish("alice", trigger, json!({})).expect("established"));
    for (id, trigger) in ids.into_iter().zip([on_change(), periodic(200)]) {
        let mut wanted =
            json!({"id": id, "ietf-yang-push:datastore": "ietf-datastores:operational"});
        for (name, value) in trigger.as_object().expect("an object") {
            wanted[name] = value.clone();
        }
        for _ in 0..1000 {
            scene.call(&of("alice"), "modify-subscription", &wanted).expect("modified");
            if trigger == on_change() {
                scene.call(&of("alice"), "resync-subscription", &json!({"id": id})).expect("sent");
            }
        }
        let waiting = scene.all(id);
        assert!(waiting.len() < 20, "{}: {:?}", waiting.len(), kinds(&waiting));
    }
}

// QUE-pub.1
#[test]
fn an_update_on_change_has_what_changes_are_told_of() {
    let mut scene = Scene::new(Settings::default());
    let id = scene.establish("alice", on_change(), json!({})).expect("established");
    let first = scene.next(id).expect("everything");
    let interface = &first["ietf-yang-push:push-update"]["datastore-contents"]["ietf-interfaces:interfaces"]
        ["interface"][0];
    // Whether an object keeps its order depends on who else is built with serde_json.
    let mut names: Vec<&String> = interface.as_object().expect("an interface").keys().collect();
    names.sort();
    assert_eq!(names, ["ietf-pfc-queue-telemetry:pfc-queue-telemetry", "name"]);
    // Everything else of it comes with every periodic update.
    let id = scene.establish("alice", periodic(100), json!({})).expect("established");
    assert!(scene.next(id).expect("everything").to_string().contains("oper-status"));
    let none = scene.call(&of("alice"), "kill-subscription", &json!({"id": 77})).expect_err("none");
    assert_eq!(&*none.message, "subscription 77, which there is not");
    assert!(app_tag(none).ends_with("no-such-subscription"));
}

#[test]
fn users_take_turns_and_few_updates_are_written_in_one_go() {
    let mut scene = Scene::new(Settings::default());
    let filter = |nth: usize| {
        json!({"ietf-yang-push:datastore-xpath-filter":
            format!("/ietf-interfaces:interfaces/interface[name='e{nth}']")})
    };
    // One user has many, each of which is written by itself; the other has one that is due later.
    let many: Vec<u32> = (0..30)
        .map(|nth| scene.establish("alice", periodic(100), filter(nth)).expect("established"))
        .collect();
    scene.later(5);
    let one = scene.establish("carol", periodic(100), filter(2)).expect("established");
    many.iter().chain([&one]).for_each(|id| drop(scene.all(*id)));
    scene.rows.reads.set(0);
    scene.ms += 1100;
    let now = scene.ms;
    assert_eq!(scene.later(0), Some(now), "the rest is due at once");
    assert!(scene.rows.reads.get() <= 4, "{}", scene.rows.reads.get());
    assert_eq!(scene.all(one).len(), 1, "whoever asks for little has it soon");
    let mut goes = 1;
    while scene.later(0) == Some(now) {
        goes += 1;
        assert!(goes < 20);
    }
    assert!(many.iter().all(|id| scene.all(*id).len() == 1));
    // What is the same for many is written once, however many they are.
    let same: Vec<u32> = (0..30)
        .map(|_| scene.establish("dave", periodic(100), filter(1)).expect("established"))
        .collect();
    many.iter()
        .chain([&one])
        .for_each(|id| scene.with(|subscriptions, _, _| subscriptions.forget(*id)));
    same.iter().for_each(|id| drop(scene.all(*id)));
    scene.rows.reads.set(0);
    scene.later(1000);
    assert_eq!(scene.rows.reads.get(), 1);
    assert!(same.iter().all(|id| scene.all(*id).len() == 1));
}

#[test]
fn what_waits_for_all_is_bounded_and_what_is_alike_counts_once() {
    let mut scene = Scene::new(Settings { all_octets_max: 20_000, ..Settings::default() });
    let ids: Vec<u32> = (0..100)
        .map(|_| scene.establish("alice", on_change(), json!({})).expect("established"))
        .collect();
    // Each has had everything by itself, some thousand octets: for most there was no room.
    let told: Vec<String> = ids.iter().map(|id| kinds(&scene.all(*id)).concat()).collect();
    assert!(told.iter().any(|kinds| kinds == "push-update"), "{told:?}");
    let suspended = told.iter().filter(|kinds| kinds.contains("subscription-suspended")).count();
    assert!((50..100).contains(&suspended), "{suspended}");
    // They go on once others have read, and get everything then.
    assert!(told.iter().all(|kinds| kinds.ends_with("push-update")), "{told:?}");
    let mut scene = Scene::new(Settings { all_octets_max: 20_000, ..Settings::default() });
    let ids: Vec<u32> = (0..100)
        .map(|_| {
            let id = scene.establish("alice", on_change(), json!({})).expect("established");
            scene.all(id);
            id
        })
        .collect();
    for interval in 2..6 {
        scene.publish(vec![Arc::new(row("e1", "q3", interval))]);
    }
    assert!(ids.iter().all(|id| kinds(&scene.all(*id)) == ["push-change-update"; 4]));
}

#[test]
fn different_filters_of_one_user_are_bounded() {
    let mut scene = Scene::new(Settings { filters_of_user_max: 2, ..Settings::default() });
    let filter = |name: &str| {
        json!({"ietf-yang-push:datastore-xpath-filter":
            format!("/ietf-interfaces:interfaces/interface[name='{name}']")})
    };
    for (user, name, fits) in [
        ("alice", "e1", true),
        ("alice", "e2", true),
        ("alice", "e3", false),
        ("alice", "e1", true),
        ("dave", "e3", true),
        ("alice", "e2", true),
    ] {
        let found = scene.establish(user, on_change(), filter(name));
        assert_eq!(found.is_ok(), fits, "{user} {name}");
        if let Err(refused) = found {
            assert!(refused.message.contains("3 different filters"), "{}", refused.message);
            assert!(app_tag(refused).ends_with("insufficient-resources"));
        }
    }
    let id = scene.establish("alice", on_change(), json!({})).expect("none is none of them");
    let mut wanted = filter("e4");
    wanted["id"] = id.into();
    wanted["ietf-yang-push:datastore"] = "ietf-datastores:operational".into();
    wanted["ietf-yang-push:on-change"] = json!({});
    scene.call(&of("alice"), "modify-subscription", &wanted).expect_err("a third");
}
