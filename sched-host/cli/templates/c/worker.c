/*
 * The scheduling component `__NAME__`: a leaf, which hands tasks to one worker.
 *
 * Everything below is yours to change. `make check` shows whether it still keeps the contract of a component.
 */
#include "msched.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A task that is held. */
struct entry {
    msched_task task;
    uint64_t length; /* expected; 0 if no component above predicted it */
    struct entry *next;
};

/* The list of tasks of one worker, in the order of their arrival. Many threads call a component concurrently, so what
 * changes is behind a lock. No lock is ever held across a *hop*, a call that reaches another component. */
struct list {
    pthread_mutex_t lock;
    struct entry *first, **last;
    uint64_t count, queued;
};

/* Called once for each node of a tree that names the component. */
static void *build(const msched_value *values, char *error, size_t room) {
    struct list *list = malloc(sizeof *list);
    (void)values;
    if (!list) {
        snprintf(error, room, "there is no memory");
        return NULL;
    }
    pthread_mutex_init(&list->lock, NULL);
    list->first = NULL;
    list->last = &list->first;
    list->count = list->queued = 0;
    return list;
}

/* The host has drained the component before, or has taken its tasks back. */
static void destroy(void *self) {
    struct list *list = self;
    while (list->first) {
        struct entry *entry = list->first;
        list->first = entry->next;
        free(entry);
    }
    pthread_mutex_destroy(&list->lock);
    free(list);
}

/* Takes the first task. The caller holds the lock. */
static msched_task unlink_first(struct list *list) {
    struct entry *entry = list->first;
    msched_task task;
    if (!entry) return msched_no_task();
    list->first = entry->next;
    if (!list->first) list->last = &list->first;
    list->count--;
    list->queued -= entry->length;
    task = entry->task;
    free(entry);
    return task;
}

/* Takes the first task. The host hears of the length that is left, which is a service, no hop: it knows from it when
 * this worker will be free. */
static msched_task pop(struct list *list, const msched_node *node) {
    msched_task task;
    pthread_mutex_lock(&list->lock);
    task = unlink_first(list);
    msched_note_queued(node, list->queued);
    pthread_mutex_unlock(&list->lock);
    return task;
}

/* A task comes from above. Store it, let its data be brought here, and wake the worker. */
static uint32_t push_task(void *self, const msched_node *node, msched_task task) {
    struct list *list = self;
    struct entry *entry = malloc(sizeof *entry);
    if (!entry) {
        msched_fail(node, "there is no memory for a task");
        return MSCHED_FULL;
    }
    msched_prefetch(node, msched_node_number(node, MSCHED_NODE_MEMORY_NODE, MSCHED_NONE), task);
    entry->task = task;
    entry->length = msched_task_predicted(node, task);
    if (entry->length == MSCHED_NO_TIME) entry->length = 0;
    entry->next = NULL;
    pthread_mutex_lock(&list->lock);
    *list->last = entry;
    list->last = &entry->next;
    list->count++;
    list->queued += entry->length;
    msched_note_queued(node, list->queued);
    pthread_mutex_unlock(&list->lock); /* before the hop */
    msched_wake_one(node);
    return MSCHED_TAKEN;
}

/* The worker wants a task: one from the list, or else one from above. (A parent may also push one here instead of
 * giving it.) */
static msched_task pull_task(void *self, const msched_node *node, uint32_t to) {
    msched_task task = pop(self, node);
    (void)to;
    if (msched_is_none(task)) task = msched_pull_from(node, MSCHED_ANY);
    return msched_is_none(task) ? pop(self, node) : task;
}

/* `can_push` is not called, since there is no child. `can_pull`, which says that there is work above, wakes the
 * worker if it is NULL. */

/* When the worker will have no more work. */
static uint64_t estimated_end(void *self, const msched_node *node) {
    struct list *list = self;
    uint64_t queued, known = msched_worker_number(node, msched_worker(node), MSCHED_WORKER_FREE_AT, 0);
    pthread_mutex_lock(&list->lock);
    queued = list->queued;
    pthread_mutex_unlock(&list->lock);
    return known != MSCHED_NO_TIME ? known : msched_now(node) + queued;
}

static uint64_t count(struct list *list) {
    uint64_t held;
    pthread_mutex_lock(&list->lock);
    held = list->count;
    pthread_mutex_unlock(&list->lock);
    return held;
}

/* How many tasks wait here, divided by the speed of the worker. */
static double estimated_load(void *self, const msched_node *node) {
    double speed = msched_relative_speedup(node, MSCHED_NONE);
    return (double)count(self) / (speed > 1 ? speed : 1);
}

/* Give up every task that is stored: the host exchanges the policy, or ends. */
static void drain(void *self, const msched_node *node) {
    struct list *list = self;
    msched_task task;
    pthread_mutex_lock(&list->lock);
    while (!msched_is_none(task = unlink_first(list))) msched_give(node, task);
    pthread_mutex_unlock(&list->lock);
}

/* Facts for stall reports and pictures. */
static void describe(void *self, const msched_node *node) {
    char value[32];
    snprintf(value, sizeof value, "%llu", (unsigned long long)count(self));
    msched_fact(node, "tasks", value);
}

/* What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
 * What it declares has to be true; `sched plugin test` compares it with what happens. */
static const msched_component component = {
    .size = sizeof(msched_component),
    .family = MSCHED_WORKER,
    .flags = MSCHED_STORES,
    .name = "__NAME__",
    .doc = "Hands tasks to one worker, in the order of their arrival.",
    .build = build,
    .destroy = destroy,
    .push_task = push_task,
    .pull_task = pull_task,
    .estimated_end = estimated_end,
    .estimated_load = estimated_load,
    .drain = drain,
    .describe = describe,
};

MSCHED_PLUGIN("__CRATE__", "0.1.0", &component)
