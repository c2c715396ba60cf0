"""What is known of pods and their containers: from the runtime, from the extender's nominations, from the kubelet's
devices.
"""
