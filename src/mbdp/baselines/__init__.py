"""The systems that the paper compares with, where they are not configurations of MBDP: own loops on the same parts."""
