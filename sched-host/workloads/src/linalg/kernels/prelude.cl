/* OpenCL C in front of the kernels. LOCAL stands before pointers into the memory of a group. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define LOCAL __local
