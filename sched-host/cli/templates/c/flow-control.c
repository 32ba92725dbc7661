/*
 * The scheduling component `__NAME__`: a queue with an optional limit.
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
    struct entry *next;
};

/* Holds tasks, and lets them go in the order of their arrival. Many threads call a component concurrently, so what
 * changes is behind a lock. No lock is ever held across a *hop*, a call that reaches another component: that one may
 * call back. */
struct queue {
    pthread_mutex_t lock;
    struct entry *first, **last;
    uint64_t count;
    uint64_t room; /* maximum number of tasks held */
};

/* Called once for each node of a tree that names the component. Every declared parameter has a value in its range. */
static void *build(const msched_value *values, char *error, size_t room) {
    struct queue *queue = malloc(sizeof *queue);
    if (!queue) {
        snprintf(error, room, "there is no memory");
        return NULL;
    }
    pthread_mutex_init(&queue->lock, NULL);
    queue->first = NULL;
    queue->last = &queue->first;
    queue->count = 0;
    queue->room = values[0].integer ? (uint64_t)values[0].integer : UINT64_MAX;
    return queue;
}

/* The host has drained the component before, or has taken its tasks back. */
static void destroy(void *self) {
    struct queue *queue = self;
    while (queue->first) {
        struct entry *entry = queue->first;
        queue->first = entry->next;
        free(entry);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* The first task that the worker on whose behalf the call happens can execute. (Not every worker can execute every
 * task: some may be GPUs.) msched_can_execute is a service, no hop, so that the lock may be held. */
static struct entry *pop(struct queue *queue, const msched_node *node) {
    struct entry **place, *found;
    pthread_mutex_lock(&queue->lock);
    place = &queue->first;
    while (*place && !msched_can_execute(node, MSCHED_REQUESTER, (*place)->task)) place = &(*place)->next;
    found = *place;
    if (found) {
        *place = found->next;
        if (!found->next) queue->last = place;
        queue->count--;
    }
    pthread_mutex_unlock(&queue->lock);
    return found;
}

/* The task of an entry, which is freed. */
static msched_task taken(struct entry *entry) {
    msched_task task = entry ? entry->task : msched_no_task();
    free(entry);
    return task;
}

/* Puts an entry back, in front of all others. */
static void unpop(struct queue *queue, struct entry *entry) {
    pthread_mutex_lock(&queue->lock);
    entry->next = queue->first;
    if (!queue->first) queue->last = &entry->next;
    queue->first = entry;
    queue->count++;
    pthread_mutex_unlock(&queue->lock);
}

/* Sends tasks to a child until it refuses one. Returns whether any was taken. */
static uint32_t pump(struct queue *queue, const msched_node *node, uint32_t to) {
    uint32_t moved = 0;
    struct entry *entry;
    while ((entry = pop(queue, node))) {
        if (msched_push_to(node, to, entry->task) != MSCHED_TAKEN) {
            unpop(queue, entry);
            /* A worker may have looked while the refused task was away. */
            msched_children_can_pull(node);
            break;
        }
        free(entry);
        moved = 1;
    }
    return moved;
}

/* A task comes from above. Store it and say so below, or hand it back with the reason. */
static uint32_t push_task(void *self, const msched_node *node, msched_task task) {
    struct queue *queue = self;
    struct entry *entry = malloc(sizeof *entry);
    if (!entry) {
        msched_fail(node, "there is no memory for a task");
        return MSCHED_FULL;
    }
    entry->task = task;
    entry->next = NULL;
    pthread_mutex_lock(&queue->lock);
    if (queue->count >= queue->room) {
        pthread_mutex_unlock(&queue->lock);
        free(entry);
        return MSCHED_FULL;
    }
    *queue->last = entry;
    queue->last = &entry->next;
    queue->count++;
    pthread_mutex_unlock(&queue->lock); /* before the hop */
    msched_children_can_pull(node);
    return MSCHED_TAKEN;
}

/* A worker below wants a task that it can execute. */
static msched_task pull_task(void *self, const msched_node *node, uint32_t to) {
    msched_task task = taken(pop(self, node));
    /* There is room now; and if there was nothing, a parent may have something. */
    uint32_t sent = msched_parents_can_push(node);
    (void)to;
    return msched_is_none(task) && sent ? taken(pop(self, node)) : task;
}

/* A child has room: send it tasks, or ask above for more. */
static uint32_t can_push(void *self, const msched_node *node, uint32_t to) {
    if (pump(self, node, to)) return 1;
    if (!msched_parents_can_push(node)) return 0;
    pump(self, node, to);
    return 1;
}

/* `can_pull`, which says that there is work above, wakes a worker if it is NULL. */

/* When the workers below will have no more work: what is queued here comes on top of what they have. It counts tasks
 * whose length a component above has predicted. */
static uint64_t estimated_end(void *self, const msched_node *node) {
    struct queue *queue = self;
    uint64_t queued = 0;
    pthread_mutex_lock(&queue->lock);
    for (struct entry *entry = queue->first; entry; entry = entry->next) {
        uint64_t length = msched_task_predicted(node, entry->task);
        if (length != MSCHED_NO_TIME) queued += length;
    }
    pthread_mutex_unlock(&queue->lock);
    return msched_end_below(node, queued);
}

static uint64_t count(struct queue *queue) {
    uint64_t held;
    pthread_mutex_lock(&queue->lock);
    held = queue->count;
    pthread_mutex_unlock(&queue->lock);
    return held;
}

/* How many tasks wait here and below, divided by the speed of the workers below. */
static double estimated_load(void *self, const msched_node *node) {
    double speed = msched_relative_speedup(node, MSCHED_NONE);
    return msched_load_below(node) + (double)count(self) / (speed > 1 ? speed : 1);
}

/* Give up every task that is stored: the host exchanges the policy, or ends. */
static void drain(void *self, const msched_node *node) {
    struct queue *queue = self;
    pthread_mutex_lock(&queue->lock);
    while (queue->first) {
        struct entry *entry = queue->first;
        queue->first = entry->next;
        msched_give(node, taken(entry));
    }
    queue->last = &queue->first;
    queue->count = 0;
    pthread_mutex_unlock(&queue->lock);
}

/* Facts for stall reports and pictures. */
static void describe(void *self, const msched_node *node) {
    char value[32];
    snprintf(value, sizeof value, "%llu", (unsigned long long)count(self));
    msched_fact(node, "tasks", value);
}

static const char *const bounds[] = {"room", NULL};
static const msched_param params[] = {
    MSCHED_PARAM_INT("room", 0, 0, INT64_MAX, "maximum number of tasks held; 0 means no limit"), MSCHED_PARAM_END};

/* What a host knows before it builds the component: it checks policies with it, and lists it in `sched plugins`.
 * What it declares has to be true; `sched plugin test` compares it with what happens. */
static const msched_component component = {
    .size = sizeof(msched_component),
    .family = MSCHED_FLOW_CONTROL,
    .flags = MSCHED_STORES,
    .name = "__NAME__",
    .doc = "Holds tasks, and lets them go in the order of their arrival.",
    .bounds = bounds,
    .params = params,
    .build = build,
    .destroy = destroy,
    .push_task = push_task,
    .pull_task = pull_task,
    .can_push = can_push,
    .estimated_end = estimated_end,
    .estimated_load = estimated_load,
    .drain = drain,
    .describe = describe,
};

MSCHED_PLUGIN("__CRATE__", "0.1.0", &component)
