/*
 * The smallest useful component, in C: a stack. Build it with
 *
 *     cc -std=c11 -O2 -fPIC -shared -pthread -I ../../include -o liblifo.so lifo.c
 *
 * `sched plugin new NAME --family FAMILY --c` begins one of your own.
 */
#include "msched.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the task that was pushed last. */
struct stack {
    pthread_mutex_t lock;
    msched_task *tasks;
    size_t count, room;
};

static void *build(const msched_value *values, char *error, size_t room) {
    struct stack *stack = calloc(1, sizeof *stack);
    (void)values;
    if (!stack) {
        snprintf(error, room, "there is no memory");
        return NULL;
    }
    pthread_mutex_init(&stack->lock, NULL);
    return stack;
}

static void destroy(void *self) {
    struct stack *stack = self;
    pthread_mutex_destroy(&stack->lock);
    free(stack->tasks);
    free(stack);
}

/* Makes room for one more. The caller holds the lock. */
static int grow(struct stack *stack) {
    size_t room = stack->room ? 2 * stack->room : 16;
    msched_task *tasks;
    if (stack->count < stack->room) return 1;
    tasks = realloc(stack->tasks, room * sizeof *tasks);
    if (!tasks) return 0;
    stack->tasks = tasks;
    stack->room = room;
    return 1;
}

static uint32_t push_task(void *self, const msched_node *node, msched_task task) {
    struct stack *stack = self;
    int stored;
    pthread_mutex_lock(&stack->lock);
    stored = grow(stack);
    if (stored) stack->tasks[stack->count++] = task;
    pthread_mutex_unlock(&stack->lock); /* before the hop */
    if (!stored) {
        msched_fail(node, "there is no memory for a task");
        return MSCHED_FULL;
    }
    msched_children_can_pull(node);
    return MSCHED_TAKEN;
}

/* The last task that the worker can execute: others may be for a GPU. */
static msched_task pull_task(void *self, const msched_node *node, uint32_t to) {
    struct stack *stack = self;
    msched_task task = msched_no_task();
    (void)to;
    pthread_mutex_lock(&stack->lock);
    for (size_t place = stack->count; place > 0; place--) {
        if (!msched_can_execute(node, MSCHED_REQUESTER, stack->tasks[place - 1])) continue;
        task = stack->tasks[place - 1];
        memmove(&stack->tasks[place - 1], &stack->tasks[place], (stack->count - place) * sizeof task);
        stack->count--;
        break;
    }
    pthread_mutex_unlock(&stack->lock);
    return task;
}

static void drain(void *self, const msched_node *node) {
    struct stack *stack = self;
    pthread_mutex_lock(&stack->lock);
    while (stack->count > 0) msched_give(node, stack->tasks[--stack->count]);
    pthread_mutex_unlock(&stack->lock);
}

static void describe(void *self, const msched_node *node) {
    struct stack *stack = self;
    char value[32];
    pthread_mutex_lock(&stack->lock);
    snprintf(value, sizeof value, "%zu", stack->count);
    pthread_mutex_unlock(&stack->lock);
    msched_fact(node, "tasks", value);
}

static const msched_component lifo = {
    .size = sizeof(msched_component),
    .family = MSCHED_FLOW_CONTROL,
    .flags = MSCHED_STORES | MSCHED_PULLED_ONLY,
    .name = "lifo-in-c",
    .doc = "Gives back the task that was pushed last.",
    .build = build,
    .destroy = destroy,
    .push_task = push_task,
    .pull_task = pull_task,
    .drain = drain,
    .describe = describe,
};

MSCHED_PLUGIN("lifo-in-c", "0.1.0", &lifo)
